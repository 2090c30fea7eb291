// What a client is told when its request cannot be served.
#pragma once

#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/json.h"

namespace spool {

class ApiError : public std::runtime_error {
  public:
    ApiError(int status, std::string type, const std::string& message)
        : std::runtime_error(message), status_(status), type_(std::move(type)) {}

    int status() const { return status_; }
    /// The shape of OpenAI's errors.
    Json body() const {
        return {{"error", {{"message", what()}, {"type", type_}, {"code", status_}, {"param", nullptr}}}};
    }

  private:
    int status_;
    std::string type_;
};

/// 400: the request itself is wrong.
[[noreturn]] inline void bad_request(const std::string& message) {
    throw ApiError(400, "invalid_request_error", message);
}

/// What an Error means to a client: 400 for what the request asked for, 500 for the rest.
inline ApiError to_api_error(const Error& error) {
    const bool theirs = error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::unsupported;
    return {theirs ? 400 : 500, theirs ? "invalid_request_error" : "server_error", error.what()};
}

/// What the exception being handled means to a client.
inline ApiError current_api_error() {
    try {
        throw;
    } catch (const ApiError& error) {
        return error;
    } catch (const Error& error) {
        return to_api_error(error);
    } catch (const std::exception& error) {
        return {500, "server_error", error.what()};
    }
}

} // namespace spool
