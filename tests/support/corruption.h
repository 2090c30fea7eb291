// Damages a file in the ways a disk, a network or an attacker might, and checks that a reader either refuses
// it with an Error that names the file, or reads something from it: no crash, no other exception.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"

namespace spool::test {

struct CorruptionCounts {
    size_t truncated = 0;
    size_t truncated_refused = 0;
    size_t changed = 0; ///< files with one changed byte
    size_t changed_refused = 0;
};

class Corruption {
  public:
    using Reader = std::function<void(const std::filesystem::path&)>;

    /// `read` opens the file and touches all data it finds. `scratch` is written again and again.
    Corruption(const std::filesystem::path& original, std::filesystem::path scratch, Reader read)
        : bytes_(read_text(original)), scratch_(std::move(scratch)), read_(std::move(read)) {}

    /// Changes and cuts the file at every position, or at about `samples` evenly spread ones.
    CorruptionCounts run(size_t samples) {
        CorruptionCounts counts;
        const size_t step = std::max<size_t>(1, bytes_.size() / samples);
        // One file is changed in place: replacing it each time would wait for the disk each time.
        std::ofstream(scratch_, std::ios::binary) << bytes_;
        std::fstream file(scratch_, std::ios::binary | std::ios::in | std::ios::out);
        for (size_t position = 0; position < bytes_.size(); position += step) {
            for (const int change : {0x01, 0x80, 0xFF}) {
                put(file, position, static_cast<char>(bytes_[position] ^ change));
                ++counts.changed;
                counts.changed_refused += size_t{refuses()};
            }
            put(file, position, bytes_[position]);
        }
        for (size_t size = bytes_.size() - 1; size > step; size -= step) {
            std::filesystem::resize_file(scratch_, size);
            ++counts.truncated;
            counts.truncated_refused += size_t{refuses()};
        }
        return counts;
    }

  private:
    static void put(std::fstream& file, size_t position, char byte) {
        file.seekp(static_cast<std::streamoff>(position)).put(byte).flush();
    }

    bool refuses() const {
        try {
            read_(scratch_);
            return false;
        } catch (const Error& error) {
            EXPECT_TRUE(error.code() == ErrorCode::bad_file || error.code() == ErrorCode::unsupported);
            EXPECT_NE(std::string_view(error.what()).find(scratch_.string()), std::string_view::npos)
                << error.what();
            return true;
        }
    }

    std::string bytes_;
    std::filesystem::path scratch_;
    Reader read_;
};

} // namespace spool::test
