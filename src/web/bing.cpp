#include "web/bing.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "web/html_tree.h"
#include "web/url.h"

namespace spool {

namespace {

constexpr const char* base = "https://www.bing.com/";

std::optional<unsigned> sextet(char letter) {
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const size_t value = alphabet.find(letter);
    return value == std::string_view::npos ? std::nullopt : std::optional(static_cast<unsigned>(value));
}

/// RFC 4648's URL-safe alphabet, with or without padding; nothing if there is another character.
std::optional<std::string> decode_base64url(std::string_view text) {
    while (text.ends_with('=')) {
        text.remove_suffix(1);
    }
    std::string bytes;
    unsigned bits = 0;
    unsigned held = 0;
    for (const char letter : text) {
        const auto value = sextet(letter);
        if (!value) {
            return std::nullopt;
        }
        held = ((held << 6U) | *value) & 0xFFFU;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes += static_cast<char>((held >> bits) & 0xFFU);
        }
    }
    return bytes;
}

/// Where a result's link leads: bing.com/ck/a?...&u=a1BASE64URL, or an address of its own.
std::optional<std::string> target(std::string_view link) {
    const std::optional<std::string> url = link.empty() ? std::nullopt : resolve_url(base, std::string(link));
    const std::optional<WebUrl> parts = url ? parse_url(*url) : std::nullopt;
    if (!parts) {
        return std::nullopt;
    }
    const bool own = parts->host == "bing.com" || parts->host.ends_with(".bing.com");
    if (!own || !parts->path.starts_with("/ck/a")) {
        return own && parts->path.starts_with("/aclick") ? std::nullopt : url;
    }
    const std::string packed = query_value(parts->query, "u").value_or("");
    const auto bytes = packed.starts_with("a1") ? decode_base64url(packed.substr(2)) : std::nullopt;
    return bytes ? resolve_url(base, *bytes) : std::nullopt;
}

const GumboNode* snippet_of(const GumboNode& result) {
    const GumboNode* const caption =
        find_first_html(result, [](const GumboNode& node) { return has_class(node, "b_caption"); });
    return find_first_html(caption == nullptr ? result : *caption,
                           [](const GumboNode& node) { return has_tag(node, GUMBO_TAG_P); });
}

bool is_challenge(const GumboNode& node) {
    const std::string_view id = html_attribute(node, "id");
    return id == "b_captcha" || has_class(node, "captcha") || id == "turnstile-widget" ||
           has_class(node, "cf-turnstile");
}

/// In lower case; bytes beyond ASCII belong to words.
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    const auto end_word = [&] {
        if (!word.empty()) {
            words.push_back(std::exchange(word, {}));
        }
    };
    for (const char letter : text) {
        if (letter >= 'A' && letter <= 'Z') {
            word += static_cast<char>(letter - 'A' + 'a');
        } else if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                   static_cast<unsigned char>(letter) >= 0x80) {
            word += letter;
        } else {
            end_word();
        }
    }
    end_word();
    return words;
}

/// Says nothing about a page's subject. Shorter words are taken for such ones anyway.
bool is_function_word(const std::string& word) {
    constexpr auto words = std::to_array<std::string_view>(
        {"about", "and",   "are",   "can",   "did",  "does", "for",  "from", "has",
         "have",  "how",   "into",  "its",   "many", "mean", "much", "not",  "that",
         "the",   "their", "there", "they",  "this", "was",  "were", "what", "when",
         "where", "which", "who",   "whose", "why",  "will", "with", "you",  "your"});
    return std::ranges::find(words, word) != words.end();
}

/// Without its ending, roughly, so that "affects" and "affect" agree.
std::string_view stem(std::string_view word) {
    return word.size() > 5 ? word.substr(0, std::max<size_t>(5, word.size() - 2)) : word;
}

std::vector<std::string> telling_words(const std::string& query) {
    std::vector<std::string> words = words_of(query);
    if (!words.empty()) {
        words.erase(words.begin());
    }
    std::erase_if(words, [](const std::string& word) {
        return (word.size() < 3 && (word[0] < '0' || word[0] > '9')) || is_function_word(word);
    });
    return words;
}

} // namespace

ResultPage parse_bing(std::string_view html) {
    const HtmlTree tree(html);
    const GumboNode& document = tree.document();
    ResultPage page;
    for (const GumboNode* node : find_html(document, [](const GumboNode& inner) {
             return has_tag(inner, GUMBO_TAG_LI) && has_class(inner, "b_algo");
         })) {
        const GumboNode* const heading =
            find_first_html(*node, [](const GumboNode& inner) { return has_tag(inner, GUMBO_TAG_H2); });
        const GumboNode* const link =
            heading == nullptr ? nullptr : find_first_html(*heading, [](const GumboNode& inner) {
                return has_tag(inner, GUMBO_TAG_A);
            });
        auto url = link == nullptr ? std::nullopt : target(html_attribute(*link, "href"));
        if (url) {
            const GumboNode* const snippet = snippet_of(*node);
            const GumboNode* const date =
                find_first_html(*node, [](const GumboNode& inner) { return has_class(inner, "news_dt"); });
            page.results.push_back({.title = html_line(*link),
                                    .url = std::move(*url),
                                    .snippet = snippet == nullptr ? "" : html_line(*snippet),
                                    .published = date == nullptr ? "" : html_line(*date)});
        }
    }
    page.blocked = page.results.empty() && find_first_html(document, is_challenge) != nullptr;
    page.recognised = !page.results.empty() || find_first_html(document, [](const GumboNode& node) {
                                                   return html_attribute(node, "id") == "b_results" ||
                                                          has_class(node, "b_no");
                                               }) != nullptr;
    return page;
}

bool answers_whole_query(const WebResult& result, const std::string& query) {
    const std::vector<std::string> wanted = telling_words(query);
    const std::vector<std::string> found = words_of(result.title + " " + result.snippet + " " + result.url);
    return wanted.empty() || std::ranges::any_of(wanted, [&](const std::string& word) {
               return std::ranges::any_of(found, [&](const std::string& other) {
                   return other.starts_with(stem(word)) || (other.size() > 3 && word.starts_with(other));
               });
           });
}

std::vector<WebResult> without_junk(std::vector<WebResult> results, const std::string& query) {
    const size_t before = results.size();
    std::erase_if(results, [&](const WebResult& result) { return !answers_whole_query(result, query); });
    if (results.size() * 3 < before) {
        results.clear();
    }
    return results;
}

} // namespace spool
