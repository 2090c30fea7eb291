#include "corpus/encoder.h"

namespace spool {

std::string reply_text(const std::string& rendered_prompt, const ThinkTags& tags, const std::string& think,
                       const std::string& answer) {
    const size_t last = rendered_prompt.find_last_not_of(" \t\r\n");
    const bool open = last != std::string::npos &&
                      std::string_view(rendered_prompt).substr(0, last + 1).ends_with(tags.start);
    if (!open && think.empty()) {
        return answer;
    }
    std::string text;
    if (!open) {
        text = tags.start + "\n";
    } else if (!rendered_prompt.ends_with('\n')) {
        text = "\n";
    }
    text += think;
    text += "\n" + tags.end;
    return answer.empty() ? text : text + "\n\n" + answer;
}

} // namespace spool
