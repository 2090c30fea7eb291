// OpenAI's /v1/responses: items in, items out, and conversations continued by the id of a reply.
#pragma once

#include <memory>
#include <string>

#include "core/json.h"
#include "server/openai.h"

namespace spool {

/// "resp_" and random digits: nobody can guess another's.
std::string new_response_id();

/// `id`: what the reply will be called. Throws ApiError 400 naming the field.
CompletionRequest parse_response_request(const Json& body, const std::string& id,
                                         const EngineOptions& defaults);

std::unique_ptr<ReplyWriter> response_writer(const std::string& id, const std::string& model);

} // namespace spool
