#include <cmath>
#include <memory>
#include <numeric>

#include <gguf.h>
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

using test::expect_error;
using test::TemporaryFolder;

std::vector<float> ramp(size_t count) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(i) / 8 - 4;
    }
    return values;
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
    return std::as_bytes(std::span(values));
}

struct GgufFree {
    void operator()(gguf_context* context) const { gguf_free(context); }
};
using GgufContext = std::unique_ptr<gguf_context, GgufFree>;

GgufContext open_with_ggml(const std::filesystem::path& path) {
    return GgufContext(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
}

/// One pair of every type, an array of every type, and tensors of three types.
void write_everything(const std::filesystem::path& path) {
    const auto values = ramp(64);
    const auto q8 = quantize(GGML_TYPE_Q8_0, values, 32);
    GgufWriter writer;
    writer.set("u8", uint8_t{200});
    writer.set("i8", int8_t{-100});
    writer.set("u16", uint16_t{60000});
    writer.set("i16", int16_t{-30000});
    writer.set("u32", uint32_t{4000000000});
    writer.set("i32", int32_t{-2000000000});
    writer.set("f32", 0.25F);
    writer.set("u64", uint64_t{1} << 63);
    writer.set("i64", int64_t{-1} << 40);
    writer.set("f64", 0.1);
    writer.set("yes", true);
    writer.set("text", "grüße");
    writer.set("empty", "");
    writer.set("a.u8", std::vector<uint8_t>{1, 2, 255});
    writer.set("a.i8", std::vector<int8_t>{-1});
    writer.set("a.u16", std::vector<uint16_t>{});
    writer.set("a.i16", std::vector<int16_t>{-7, 7});
    writer.set("a.u32", std::vector<uint32_t>{7});
    writer.set("a.i32", std::vector<int32_t>{-8, 9});
    writer.set("a.f32", std::vector<float>{0.5F, -0.5F});
    writer.set("a.u64", std::vector<uint64_t>{1, 2});
    writer.set("a.i64", std::vector<int64_t>{-1, -2});
    writer.set("a.f64", std::vector<double>{0.1});
    writer.set("a.bool", std::vector<bool>{true, false, true});
    writer.set("a.text", std::vector<std::string>{"one", "", "three is longer than a short string holds"});
    writer.add("matrix", GGML_TYPE_F32, {16, 4}, bytes_of(values));
    writer.add("vector", GGML_TYPE_F32, {3}, bytes_of(values).first(12));
    writer.add("quantised", GGML_TYPE_Q8_0, {32, 2}, q8);
    writer.write(path);
}

TEST(Gguf, everything_written_is_read_back) {
    const TemporaryFolder folder;
    const auto path = folder / "all.gguf";
    write_everything(path);

    const GgufFile file(path);
    EXPECT_EQ(file.version(), 3U);
    EXPECT_EQ(file.pairs().size(), 25U);
    EXPECT_EQ(std::get<uint8_t>(*file.find("u8")), 200);
    EXPECT_EQ(std::get<int8_t>(*file.find("i8")), -100);
    EXPECT_EQ(std::get<uint64_t>(*file.find("u64")), uint64_t{1} << 63);
    EXPECT_EQ(std::get<double>(*file.find("f64")), 0.1);
    EXPECT_EQ(std::get<bool>(*file.find("yes")), true);
    EXPECT_EQ(file.string("text"), "grüße");
    EXPECT_EQ(file.string("empty"), "");
    EXPECT_EQ(file.strings("a.text").at(2), "three is longer than a short string holds");
    EXPECT_EQ(std::get<std::vector<bool>>(std::get<GgufArray>(*file.find("a.bool"))),
              (std::vector<bool>{true, false, true}));
    EXPECT_TRUE(std::get<std::vector<uint16_t>>(std::get<GgufArray>(*file.find("a.u16"))).empty());
    EXPECT_EQ(file.find("absent"), nullptr);

    ASSERT_EQ(file.tensors().size(), 3U);
    const GgufTensor* matrix = file.find_tensor("matrix");
    ASSERT_NE(matrix, nullptr);
    EXPECT_EQ(matrix->ne, (std::vector<int64_t>{16, 4}));
    EXPECT_EQ(to_float(*matrix), ramp(64));
    EXPECT_EQ(file.find_tensor("vector")->elements(), 3);
    const auto dequantised = to_float(*file.find_tensor("quantised"));
    for (size_t i = 0; i < 64; ++i) {
        EXPECT_NEAR(dequantised[i], ramp(64)[i], 4.0 / 127 / 2 + 1e-3);
    }
    EXPECT_EQ(file.find_tensor("absent"), nullptr);
}

TEST(Gguf, ggml_reads_what_the_writer_writes) {
    const TemporaryFolder folder;
    const auto path = folder / "all.gguf";
    write_everything(path);

    const auto context = open_with_ggml(path);
    ASSERT_NE(context, nullptr);
    EXPECT_EQ(gguf_get_version(context.get()), 3U);
    EXPECT_EQ(gguf_get_n_kv(context.get()), 25);
    EXPECT_EQ(gguf_get_alignment(context.get()), 32U);
    EXPECT_EQ(gguf_get_val_u32(context.get(), gguf_find_key(context.get(), "u32")), 4000000000U);
    EXPECT_STREQ(gguf_get_val_str(context.get(), gguf_find_key(context.get(), "text")), "grüße");
    const int64_t texts = gguf_find_key(context.get(), "a.text");
    ASSERT_EQ(gguf_get_arr_n(context.get(), texts), 3U);
    EXPECT_STREQ(gguf_get_arr_str(context.get(), texts, 0), "one");
    ASSERT_EQ(gguf_get_n_tensors(context.get()), 3);
    EXPECT_STREQ(gguf_get_tensor_name(context.get(), 2), "quantised");
    EXPECT_EQ(gguf_get_tensor_type(context.get(), 2), GGML_TYPE_Q8_0);
    EXPECT_EQ(gguf_get_tensor_offset(context.get(), 2), 256U + 32U);
}

TEST(Gguf, what_ggml_writes_is_read) {
    const TemporaryFolder folder;
    const auto path = folder / "ggml.gguf";
    const GgufContext context(gguf_init_empty());
    gguf_set_val_str(context.get(), "general.architecture", "test");
    gguf_set_val_f64(context.get(), "pi", 3.25);
    std::vector<const char*> words = {"a", "bc"};
    gguf_set_arr_str(context.get(), "words", words.data(), words.size());
    const std::unique_ptr<ggml_context, decltype(&ggml_free)> tensors(
        ggml_init({.mem_size = 1 << 16, .mem_buffer = nullptr, .no_alloc = false}), &ggml_free);
    for (const char* name : {"one", "two"}) {
        ggml_tensor* tensor = ggml_new_tensor_2d(tensors.get(), GGML_TYPE_F32, 5, 2);
        ggml_set_name(tensor, name);
        const auto values = ramp(10);
        std::ranges::copy(values, static_cast<float*>(tensor->data));
        gguf_add_tensor(context.get(), tensor);
    }
    ASSERT_TRUE(gguf_write_to_file(context.get(), path.c_str(), false));

    const GgufFile file(path);
    EXPECT_EQ(file.string("general.architecture"), "test");
    EXPECT_EQ(file.f32("pi"), 3.25F);
    EXPECT_EQ(file.strings("words"), (std::vector<std::string>{"a", "bc"}));
    EXPECT_EQ(to_float(*file.find_tensor("two")), ramp(10));
}

TEST(Gguf, a_real_model_copied_pair_by_pair_is_the_same_file) {
    const auto model = test::default_model();
    if (!model) {
        GTEST_SKIP() << "models/SmolLM2-135M-Instruct.Q4_1.gguf is absent; make model fetches it";
    }
    const TemporaryFolder folder;
    const GgufFile file(*model);
    GgufWriter writer;
    for (const GgufPair& pair : file.pairs()) {
        writer.set(pair.key, pair.value);
    }
    for (const GgufTensor& tensor : file.tensors()) {
        writer.add(tensor.name, tensor.type, tensor.ne, tensor.data);
    }
    writer.write(folder / "copy.gguf");
    const MappedFile original(*model);
    const MappedFile copy(folder / "copy.gguf");
    EXPECT_TRUE(std::ranges::equal(original.bytes(), copy.bytes()));
}

TEST(Gguf, integers_of_any_width_are_accepted_where_the_value_fits) {
    const TemporaryFolder folder;
    const auto path = folder / "ints.gguf";
    GgufWriter writer;
    writer.set("small", uint8_t{7});
    writer.set("wide", uint64_t{7});
    writer.set("signed", int32_t{7});
    writer.set("negative", int32_t{-1});
    writer.set("huge", uint64_t{1} << 32);
    writer.set("flag", true);
    writer.set("text", "7");
    writer.set("numbers", std::vector<int32_t>{7});
    writer.write(path);

    const GgufFile file(path);
    EXPECT_EQ(file.u32("small"), 7U);
    EXPECT_EQ(file.u32("wide"), 7U);
    EXPECT_EQ(file.u32("signed"), 7U);
    EXPECT_EQ(file.optional_u32("absent"), std::nullopt);
    EXPECT_EQ(file.optional_string("absent"), std::nullopt);
    EXPECT_EQ(file.optional_string("text"), "7");
    expect_error(ErrorCode::bad_file, {path.string(), "'negative'", "-1"}, [&] { file.u32("negative"); });
    expect_error(ErrorCode::bad_file, {"'huge'", "4294967296"}, [&] { file.u32("huge"); });
    expect_error(ErrorCode::bad_file, {"'flag'", "bool"}, [&] { file.u32("flag"); });
    expect_error(ErrorCode::bad_file, {"'text'", "str"}, [&] { file.f32("text"); });
    expect_error(ErrorCode::bad_file, {"'small'", "u8", "string"}, [&] { file.string("small"); });
    expect_error(ErrorCode::bad_file, {"'numbers'", "i32", "strings"}, [&] { file.strings("numbers"); });
    expect_error(ErrorCode::bad_file, {path.string(), "'absent'", "missing"}, [&] { file.u32("absent"); });
    expect_error(ErrorCode::bad_file, {"'text'"}, [&] { file.optional_u32("text"); });
}

TEST(Gguf, setting_a_key_again_replaces_it) {
    const TemporaryFolder folder;
    GgufWriter writer;
    writer.set("key", uint32_t{1});
    writer.set("other", uint32_t{2});
    writer.set("key", "now text");
    writer.set("general.alignment", uint32_t{64}); // copied from another file; the writer keeps its own
    writer.write(folder / "a.gguf");
    const GgufFile file(folder / "a.gguf");
    EXPECT_EQ(file.pairs().size(), 3U);
    EXPECT_EQ(file.string("key"), "now text");
    EXPECT_EQ(file.u32("general.alignment"), 32U);
}

TEST(Gguf, the_writer_refuses_tensors_that_contradict_themselves) {
    const auto values = ramp(64);
    GgufWriter writer;
    writer.add("taken", GGML_TYPE_F32, {64}, bytes_of(values));
    const auto add = [&](std::string name, ggml_type type, std::vector<int64_t> ne) {
        writer.add(std::move(name), type, std::move(ne), bytes_of(values));
    };
    expect_error(ErrorCode::invalid_argument, {"taken", "twice"}, [&] { add("taken", GGML_TYPE_F32, {64}); });
    expect_error(ErrorCode::invalid_argument, {"short"}, [&] { add("short", GGML_TYPE_F32, {63}); });
    expect_error(ErrorCode::invalid_argument, {"f16"}, [&] { add("f16", GGML_TYPE_F16, {64}); });
    expect_error(ErrorCode::invalid_argument, {"block"}, [&] { add("block", GGML_TYPE_Q8_0, {33}); });
    expect_error(ErrorCode::invalid_argument, {"dims"},
                 [&] { add("dims", GGML_TYPE_F32, {1, 1, 1, 1, 64}); });
    expect_error(ErrorCode::invalid_argument, {"minus"}, [&] { add("minus", GGML_TYPE_F32, {-64, -1}); });
    expect_error(ErrorCode::invalid_argument, {"1 to 63"},
                 [&] { add(std::string(64, 'x'), GGML_TYPE_F32, {64}); });
    expect_error(ErrorCode::invalid_argument, {"key"}, [&] { writer.set("", true); });
}

TEST(Gguf, writing_into_a_missing_folder_is_an_error_that_names_it) {
    expect_error(ErrorCode::not_found, {"/nowhere/at/all.gguf"},
                 [] { GgufWriter().write("/nowhere/at/all.gguf"); });
}

TEST(Gguf, quantised_values_come_back_within_the_types_precision) {
    std::vector<float> values(512);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = std::sin(static_cast<float>(i));
    }
    const std::vector<std::pair<ggml_type, float>> tolerances = {
        {GGML_TYPE_F32, 0.0F},   {GGML_TYPE_F16, 0.001F}, {GGML_TYPE_BF16, 0.005F}, {GGML_TYPE_Q8_0, 0.005F},
        {GGML_TYPE_Q4_1, 0.08F}, {GGML_TYPE_Q4_0, 0.14F}, {GGML_TYPE_Q6_K, 0.05F}};
    for (const auto& [type, tolerance] : tolerances) {
        const auto bytes = quantize(type, values, 256);
        ASSERT_EQ(bytes.size(), ggml_row_size(type, 256) * 2);
        const auto back = to_float(GgufTensor{.name = "t", .type = type, .ne = {256, 2}, .data = bytes});
        for (size_t i = 0; i < values.size(); ++i) {
            ASSERT_NEAR(back[i], values[i], tolerance) << ggml_type_name(type) << " " << i;
        }
    }
}

TEST(Gguf, quantising_refuses_what_the_type_cannot_hold) {
    const auto values = ramp(66);
    expect_error(ErrorCode::invalid_argument, {"33", "q8_0"}, [&] { quantize(GGML_TYPE_Q8_0, values, 33); });
    expect_error(ErrorCode::invalid_argument, {"66", "64"}, [&] { quantize(GGML_TYPE_F32, values, 64); });
    expect_error(ErrorCode::invalid_argument, {"i32"}, [&] { quantize(GGML_TYPE_I32, values, 66); });
    expect_error(ErrorCode::invalid_argument, {"iq2_xxs"}, [&] { quantize(GGML_TYPE_IQ2_XXS, values, 66); });
    EXPECT_TRUE(quantize(GGML_TYPE_Q8_0, {}, 32).empty());
}

TEST(Gguf, integer_tensors_are_not_weights) {
    const std::vector<std::byte> bytes(8);
    const GgufTensor tensor{.name = "ids", .type = GGML_TYPE_I32, .ne = {2}, .data = bytes};
    expect_error(ErrorCode::unsupported, {"'ids'", "i32"}, [&] { to_float(tensor); });
}

} // namespace
} // namespace spool
