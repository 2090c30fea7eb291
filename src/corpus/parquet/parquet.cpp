#include "corpus/parquet/parquet.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <utility>

#include "core/error.h"

namespace spool {

namespace {

[[noreturn]] void bad(const std::filesystem::path& path, const std::string& reason) {
    fail(ErrorCode::bad_file, "{}: cannot be read as Parquet: {}; fetch the file again", path.string(),
         reason);
}

template <typename T>
T checked(arrow::Result<T> result, const std::filesystem::path& path) {
    if (!result.ok()) {
        bad(path, result.status().message());
    }
    return std::move(result).ValueUnsafe();
}

Json value_of(const arrow::Array& array, int64_t row);

template <typename List>
Json list_of(const arrow::Array& array, int64_t row) {
    const auto& list = static_cast<const List&>(array);
    Json values = Json::array();
    for (int64_t i = 0; i < static_cast<int64_t>(list.value_length(row)); ++i) {
        values.push_back(value_of(*list.values(), static_cast<int64_t>(list.value_offset(row)) + i));
    }
    return values;
}

Json object_of(const arrow::Array& array, int64_t row) {
    const auto& group = static_cast<const arrow::StructArray&>(array);
    Json object = Json::object();
    for (int i = 0; i < group.num_fields(); ++i) {
        object[group.type()->field(i)->name()] = value_of(*group.field(i), row);
    }
    return object;
}

template <typename Scalars>
Json scalar_of(const arrow::Array& array, int64_t row) {
    return static_cast<const Scalars&>(array).Value(row);
}

template <typename Strings>
Json string_of(const arrow::Array& array, int64_t row) {
    return static_cast<const Strings&>(array).GetString(row);
}

Json value_of(const arrow::Array& array, int64_t row) {
    if (array.IsNull(row)) {
        return nullptr;
    }
    switch (array.type_id()) {
    case arrow::Type::STRING:
        return string_of<arrow::StringArray>(array, row);
    case arrow::Type::LARGE_STRING:
        return string_of<arrow::LargeStringArray>(array, row);
    case arrow::Type::LIST:
        return list_of<arrow::ListArray>(array, row);
    case arrow::Type::LARGE_LIST:
        return list_of<arrow::LargeListArray>(array, row);
    case arrow::Type::STRUCT:
        return object_of(array, row);
    case arrow::Type::BOOL:
        return scalar_of<arrow::BooleanArray>(array, row);
    case arrow::Type::INT32:
        return scalar_of<arrow::Int32Array>(array, row);
    case arrow::Type::INT64:
        return scalar_of<arrow::Int64Array>(array, row);
    case arrow::Type::DOUBLE:
        return scalar_of<arrow::DoubleArray>(array, row);
    case arrow::Type::DICTIONARY: {
        const auto& encoded = static_cast<const arrow::DictionaryArray&>(array);
        return value_of(*encoded.dictionary(), encoded.GetValueIndex(row));
    }
    default:
        return nullptr;
    }
}

class ParquetSource final : public RecordSource {
  public:
    explicit ParquetSource(const std::filesystem::path& path)
        : path_(path), bytes_(std::filesystem::file_size(path)) {
        constexpr int64_t batch_rows = 64; // traces are long
        try {
            auto file = checked(arrow::io::ReadableFile::Open(path.string()), path);
            reader_ = checked(parquet::arrow::OpenFile(std::move(file), arrow::default_memory_pool()), path);
            reader_->set_batch_size(batch_rows);
            rows_ = reader_->parquet_reader()->metadata()->num_rows();
            batches_ = checked(reader_->GetRecordBatchReader(), path);
        } catch (const parquet::ParquetException& error) {
            bad(path_, error.what());
        }
    }

    std::optional<Json> next() override {
        try {
            while (batch_ == nullptr || row_ == batch_->num_rows()) {
                const auto status = batches_->ReadNext(&batch_);
                if (!status.ok()) {
                    bad(path_, status.message());
                }
                if (batch_ == nullptr) {
                    return std::nullopt;
                }
                row_ = 0;
            }
        } catch (const parquet::ParquetException& error) {
            bad(path_, error.what());
        }
        Json object = Json::object();
        for (int i = 0; i < batch_->num_columns(); ++i) {
            object[batch_->column_name(i)] = value_of(*batch_->column(i), row_);
        }
        ++row_;
        ++done_;
        return object;
    }

    std::string where() const override { return fmt::format("{}: row {}", path_.string(), done_); }

    uint64_t position() const override {
        return rows_ == 0 ? bytes_
                          : static_cast<uint64_t>(static_cast<double>(done_) / static_cast<double>(rows_) *
                                                  static_cast<double>(bytes_));
    }

  private:
    std::filesystem::path path_;
    uint64_t bytes_;
    std::unique_ptr<parquet::arrow::FileReader> reader_;
    std::unique_ptr<arrow::RecordBatchReader> batches_; ///< must not outlive reader_
    std::shared_ptr<arrow::RecordBatch> batch_;
    int64_t row_ = 0; ///< in batch_
    int64_t rows_ = 0;
    int64_t done_ = 0;
};

} // namespace

std::unique_ptr<RecordSource> open_parquet(const std::filesystem::path& path) {
    return std::make_unique<ParquetSource>(path);
}

} // namespace spool
