#include <algorithm>

#include <gtest/gtest.h>

#include "formats/torch_pickle.h"
#include "support/corruption.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

using test::expect_error;
using test::TemporaryFolder;

std::filesystem::path data(const std::string& name) { return test::fixture("formats/data/" + name); }

void refused(const std::string& name, ErrorCode code, std::initializer_list<std::string_view> words) {
    expect_error(code, {name}, [&] { const TorchPickleFile file(data(name)); });
    expect_error(code, words, [&] { const TorchPickleFile file(data(name)); });
}

/// Element i of n is (i - n/2)/8, as make_fixtures.py writes it.
std::vector<float> ramp(size_t n) {
    std::vector<float> values(n);
    const auto half = static_cast<int>(n / 2);
    for (int i = 0; float& value : values) {
        value = static_cast<float>(i++ - half) / 8;
    }
    return values;
}

const TensorView& at(const TorchPickleFile& file, std::string_view name) {
    const TensorView* tensor = file.find(name);
    if (tensor == nullptr) {
        throw std::runtime_error("no tensor " + std::string(name));
    }
    return *tensor;
}

void expect_state_dict(const TorchPickleFile& file) {
    EXPECT_EQ(file.tensors().size(), 5U);
    EXPECT_EQ(at(file, "layers.0.weight").shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(to_float(at(file, "layers.0.weight")), ramp(6));
    EXPECT_EQ(to_float(at(file, "layers.0.bias")), ramp(2));
    EXPECT_EQ(to_float(at(file, "layers.1.weight")), ramp(4));
    EXPECT_TRUE(at(file, "scale").shape.empty());
    EXPECT_EQ(to_float(at(file, "scale")), std::vector<float>{0.5F});
    EXPECT_EQ(file.find("absent"), nullptr);
}

TEST(TorchPickle, a_modules_state_dict_is_read) { expect_state_dict(TorchPickleFile(data("state_dict.pt"))); }

TEST(TorchPickle, a_zip64_archive_of_another_zip_writer_is_read) {
    expect_state_dict(TorchPickleFile(data("zip64.pt")));
}

TEST(TorchPickle, a_checkpoint_of_all_types_nested_dicts_and_lists_is_read) {
    const TorchPickleFile file(data("checkpoint.pt"));
    for (const char* type : {"f64", "f32", "f16", "bf16"}) {
        const TensorView& tensor = at(file, "types." + std::string(type));
        EXPECT_EQ(dtype_name(tensor.dtype), type);
        EXPECT_EQ(to_float(tensor), ramp(6)) << type;
    }
    for (const char* type : {"i64", "i32", "i16", "i8", "u32", "u16", "u8", "bool"}) {
        const TensorView& tensor = at(file, "types." + std::string(type));
        EXPECT_EQ(dtype_name(tensor.dtype), type);
        EXPECT_EQ(tensor.elements(), 6U) << type;
    }
    EXPECT_EQ(std::to_integer<int>(at(file, "types.i8").data[0]), 0xFD);
    EXPECT_EQ(to_float(at(file, "parameter")), ramp(5));
    const auto whole = ramp(24);
    EXPECT_EQ(to_float(at(file, "tied")), whole);
    EXPECT_EQ(to_float(at(file, "slice")), std::vector<float>(whole.begin() + 8, whole.begin() + 16));
    EXPECT_EQ(at(file, "empty").shape, (std::vector<int64_t>{0, 3}));
    EXPECT_EQ(to_float(at(file, "list.1")), ramp(3));
    EXPECT_EQ(to_float(at(file, "7")), ramp(1));
    EXPECT_EQ(file.find("step"), nullptr);
}

TEST(TorchPickle, tensors_that_are_not_contiguous_are_refused_by_name) {
    refused("transposed.pt", ErrorCode::unsupported, {"'turned'", "contiguous"});
    refused("expanded.pt", ErrorCode::unsupported, {"'wide'", "contiguous"});
}

TEST(TorchPickle, a_command_in_the_pickle_is_refused_by_name_and_not_run) {
    refused("evil_command.pt", ErrorCode::unsupported,
            {"data.pkl", "byte ", "'posix.system'", "nothing was executed"});
    EXPECT_FALSE(std::filesystem::exists("executed-by-spool"));
    refused("module.pt", ErrorCode::unsupported, {"nothing was executed", "state_dict"});
}

TEST(TorchPickle, bombs_do_not_go_off) {
    EXPECT_TRUE(TorchPickleFile(data("evil_memo.pt")).tensors().empty());
    refused("evil_doubling.pt", ErrorCode::bad_file, {"data.pkl", "nested deeper or wider"});
    refused("evil_cycle.pt", ErrorCode::bad_file, {"nested deeper"});
    refused("evil_depth.pt", ErrorCode::unsupported, {"no dict"});
}

TEST(TorchPickle, storages_have_to_be_there_and_of_the_right_size) {
    refused("evil_missing_storage.pt", ErrorCode::bad_file,
            {"data.pkl", "byte ", "storage '0'", "not in the archive"});
    refused("evil_short_storage.pt", ErrorCode::bad_file, {"data.pkl", "storage '0'", "12 bytes"});
}

TEST(TorchPickle, other_ways_to_save_are_refused_with_what_to_do) {
    refused("legacy.pt", ErrorCode::unsupported, {"before PyTorch 1.6", "save it again"});
    refused("protocol4.pt", ErrorCode::unsupported, {"protocol 4", "expected 2"});
    refused("compressed.pt", ErrorCode::unsupported, {"member 'archive/data.pkl'", "compressed (method 8)"});
    refused("big_endian.pt", ErrorCode::unsupported, {"byteorder", "'big'", "'little'"});
    refused("types.safetensors", ErrorCode::bad_file, {"not a zip archive"});
}

TEST(TorchPickle, every_cut_and_flip_is_refused_or_read) {
    for (const char* name : {"state_dict.pt", "checkpoint.pt", "zip64.pt"}) {
        const TemporaryFolder folder;
        test::Corruption corruption(data(name), folder / "damaged.pt", [](const std::filesystem::path& path) {
            const TorchPickleFile file(path);
            size_t sum = 0;
            for (const TensorView& tensor : file.tensors()) {
                for (const std::byte byte : tensor.data) {
                    sum += std::to_integer<size_t>(byte);
                }
            }
            EXPECT_LT(sum, size_t{1} << 40);
        });
        const auto counts = corruption.run(2048);
        EXPECT_EQ(counts.truncated_refused, counts.truncated) << name;
        EXPECT_GT(counts.changed_refused, counts.changed / 4) << name;
    }
}

} // namespace
} // namespace spool
