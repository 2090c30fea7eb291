#include "corpus/records.h"

#include "core/error.h"
#include "corpus/json_lines.h"

namespace spool {

namespace {

std::vector<Token> token_ids(const Json& object, const char* field, const std::string& where,
                             int32_t vocab_size) {
    const auto found = object.find(field);
    if (found == object.end() || !found->is_array()) {
        fail(ErrorCode::bad_file, "{}: \"{}\" must be an array of token ids", where, field);
    }
    std::vector<Token> ids;
    for (const Json& value : *found) {
        if (!value.is_number_integer() || value < 0 || value >= vocab_size) {
            fail(ErrorCode::bad_file, "{}: \"{}\" holds {}, which is no token id of a vocabulary of {}",
                 where, field, value.dump(), vocab_size);
        }
        ids.push_back(value.get<Token>());
    }
    return ids;
}

} // namespace

std::vector<Record> read_records(const std::filesystem::path& path, int32_t vocab_size) {
    std::vector<Record> records;
    JsonLines lines(path);
    while (auto object = lines.next()) {
        const std::string where = fmt::format("{}:{}", path.string(), lines.line());
        if (!object->is_object()) {
            fail(ErrorCode::bad_file, "{}: expected an object with prompt, distant, recent and target",
                 where);
        }
        Record record;
        const Json id = object->value("id", Json(std::to_string(lines.line())));
        record.id = id.is_string() ? id.get<std::string>() : id.dump();
        record.prompt = token_ids(*object, "prompt", where, vocab_size);
        record.distant = token_ids(*object, "distant", where, vocab_size);
        record.recent = token_ids(*object, "recent", where, vocab_size);
        record.target = token_ids(*object, "target", where, vocab_size);
        if (record.recent.empty() || record.target.empty()) {
            fail(ErrorCode::bad_file, "{}: recent and target must not be empty", where);
        }
        record.source = std::move(*object);
        records.push_back(std::move(record));
    }
    if (records.empty()) {
        fail(ErrorCode::bad_file, "{}: holds no records", path.string());
    }
    return records;
}

} // namespace spool
