// Expectations on spool::Error: its code, and the words its message must contain.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/error.h"

namespace spool::test {

/// Runs `action`, which must throw Error{code} with a message that contains every one of `words`.
inline void expect_error(ErrorCode code, std::initializer_list<std::string_view> words,
                         const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        const std::string message = error.what();
        EXPECT_EQ(to_string(error.code()), to_string(code)) << message;
        for (const std::string_view word : words) {
            EXPECT_NE(message.find(word), std::string::npos) << "no '" << word << "' in: " << message;
        }
        return;
    }
    ADD_FAILURE() << "no error, expected " << to_string(code);
}

} // namespace spool::test
