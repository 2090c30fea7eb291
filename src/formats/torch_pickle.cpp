#include "formats/torch_pickle.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "formats/torch_machine.h"
#include "formats/zip.h"

namespace spool {

namespace {

constexpr int max_depth = 32;
constexpr size_t max_visits = size_t{1} << 18;
constexpr size_t max_name = 1024;
constexpr size_t name_budget = size_t{128} << 20; // memory for the tensors' names and views

/// Walks a pickled dict and collects its tensors under dotted names.
class Flattener {
  public:
    Flattener(const TorchMachine& machine, std::string source)
        : machine_(machine), source_(std::move(source)) {}

    std::vector<TensorView> run(TorchHandle root) {
        if (!std::holds_alternative<TorchDict>(machine_.at(root))) {
            fail(ErrorCode::unsupported, "{}: the pickled object is no dict; save model.state_dict()",
                 source_);
        }
        visit(root, "", 0);
        return std::move(tensors_);
    }

  private:
    void visit(TorchHandle handle, const std::string& name, int depth) {
        // Shared and cyclic parts are walked each time they are met: without a bound a small file could name
        // endlessly many tensors.
        if (depth > max_depth || ++visits_ > max_visits || name.size() > max_name) {
            fail_size(name);
        }
        const TorchValue& value = machine_.at(handle);
        if (const auto* tensor = std::get_if<TorchTensor>(&value)) {
            add(*tensor, name);
        } else if (const auto* dict = std::get_if<TorchDict>(&value)) {
            for (const auto& [key, item] : dict->items) {
                visit(item, join(name, key_name(key, name)), depth + 1);
            }
        } else if (const auto* sequence = std::get_if<TorchSequence>(&value)) {
            for (size_t i = 0; i < sequence->items.size(); ++i) {
                visit(sequence->items[i], join(name, std::to_string(i)), depth + 1);
            }
        }
    }

    [[noreturn]] void fail_size(const std::string& name) const {
        fail(ErrorCode::bad_file, "{}: the dict at '{}' is nested deeper or wider than any state dict",
             source_, printable(name));
    }

    void add(const TorchTensor& tensor, const std::string& name) {
        named_ += 2 * name.size() + 2 * sizeof(TensorView);
        if (named_ > name_budget) {
            fail_size(name);
        }
        if (!tensor.contiguous) {
            fail(ErrorCode::unsupported,
                 "{}: tensor '{}' is not contiguous; call .contiguous() on it before torch.save", source_,
                 printable(name));
        }
        if (!names_.insert(name).second) {
            fail(ErrorCode::bad_file, "{}: two tensors have the name '{}'", source_, printable(name));
        }
        tensors_.push_back({.name = name, .dtype = tensor.dtype, .shape = tensor.shape, .data = tensor.data});
    }

    std::string key_name(TorchHandle key, const std::string& where) const {
        const TorchValue& value = machine_.at(key);
        if (const auto* text = std::get_if<std::string_view>(&value)) {
            return std::string(*text);
        }
        if (const auto* number = std::get_if<int64_t>(&value)) {
            return std::to_string(*number);
        }
        fail(ErrorCode::unsupported, "{}: the dict at '{}' has a key that is neither text nor an integer",
             source_, printable(where));
    }

    static std::string join(const std::string& parent, const std::string& name) {
        return parent.empty() ? name : parent + "." + name;
    }

    const TorchMachine& machine_;
    std::string source_;
    size_t visits_ = 0;
    size_t named_ = 0;
    std::unordered_set<std::string> names_;
    std::vector<TensorView> tensors_;
};

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void refuse_legacy(const MappedFile& file) {
    constexpr auto pickle_start = std::byte{0x80}; // PROTO: the first opcode of every pickle
    if (!file.bytes().empty() && file.bytes().front() == pickle_start) {
        fail(ErrorCode::unsupported,
             "{}: byte 0: a bare pickle, as torch.save wrote before PyTorch 1.6; load it with "
             "torch.load(path, weights_only=True) and save it again with torch.save(state_dict, path)",
             file.path().string());
    }
}

/// The folder every member lies in, named after the file that was first saved: "archive/".
std::string_view archive_folder(const ZipDirectory& zip, const std::string& source) {
    constexpr std::string_view pickle_name = "data.pkl";
    const ZipMember* found = nullptr;
    for (const ZipMember& member : zip.members()) {
        const size_t slash = member.name.find('/');
        if (slash == std::string_view::npos || member.name.substr(slash + 1) != pickle_name) {
            continue;
        }
        if (found != nullptr) {
            fail(ErrorCode::bad_file, "{}: the members '{}' and '{}' are both the pickle", source,
                 printable(found->name), printable(member.name));
        }
        found = &member;
    }
    if (found == nullptr) {
        fail(ErrorCode::bad_file, "{}: no member FOLDER/data.pkl; not an archive of torch.save", source);
    }
    return found->name.substr(0, found->name.size() - pickle_name.size());
}

void check_byte_order(const ZipDirectory& zip, const std::string& folder, const std::string& source) {
    const ZipMember* member = zip.find(folder + "byteorder");
    if (member != nullptr && as_text(member->data) != "little") {
        fail(ErrorCode::unsupported, "{}: member '{}' says '{}', expected 'little'", source,
             printable(member->name), printable(as_text(member->data)));
    }
}

} // namespace

TorchPickleFile::TorchPickleFile(const std::filesystem::path& path) : file_(path) {
    refuse_legacy(file_);
    const std::string source = path.string();
    const ZipDirectory zip(source, file_.bytes());
    const std::string folder(archive_folder(zip, source));
    check_byte_order(zip, folder, source);

    const ZipMember* pickle = zip.find(folder + "data.pkl");
    const std::string pickle_source = source + ": member '" + printable(pickle->name) + "'";
    TorchMachine machine(ByteReader(pickle_source, pickle->data),
                         [&](std::string_view key) -> std::optional<std::span<const std::byte>> {
                             const ZipMember* storage = zip.find(folder + "data/" + std::string(key));
                             return storage == nullptr ? std::nullopt : std::optional(storage->data);
                         });
    const TorchHandle root = machine.run();
    tensors_ = Flattener(machine, pickle_source).run(root);
}

const TensorView* TorchPickleFile::find(std::string_view name) const {
    const auto it = std::ranges::find(tensors_, name, &TensorView::name);
    return it == tensors_.end() ? nullptr : &*it;
}

} // namespace spool
