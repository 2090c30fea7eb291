#include "web/duckduckgo.h"

#include <optional>
#include <string>
#include <utility>

#include "web/html_tree.h"
#include "web/url.h"

namespace spool {

namespace {

constexpr const char* base = "https://html.duckduckgo.com/";

bool is_own_host(const WebUrl& url) {
    return url.host == "duckduckgo.com" || url.host.ends_with(".duckduckgo.com");
}

/// Where a result's link leads; nothing for an advertisement (its way goes through y.js) or a broken link.
std::optional<std::string> target(std::string_view link) {
    const auto resolve = [](const std::string& reference) {
        return reference.empty() ? std::nullopt : resolve_url(base, reference);
    };
    std::optional<std::string> url = resolve(std::string(link));
    std::optional<WebUrl> parts = url ? parse_url(*url) : std::nullopt;
    if (parts && is_own_host(*parts) && parts->path == "/l/") {
        url = resolve(query_value(parts->query, "uddg").value_or(""));
        parts = url ? parse_url(*url) : std::nullopt;
    }
    if (!parts || (is_own_host(*parts) && parts->path == "/y.js")) {
        return std::nullopt;
    }
    return url;
}

bool is_challenge(const GumboNode& node) {
    return html_attribute(node, "id") == "challenge-form" || has_class(node, "anomaly-modal__modal") ||
           html_attribute(node, "action").find("/anomaly.js") != std::string_view::npos;
}

const GumboNode* first_of_class(const GumboNode& top, std::string_view name) {
    return find_first_html(top, [&](const GumboNode& node) { return has_class(node, name); });
}

/// "&nbsp; &nbsp; 2026-02-28T12:30:00.0000000" beside the address: the day.
std::string published(const GumboNode& result) {
    const GumboNode* const extras = first_of_class(result, "result__extras__url");
    if (extras == nullptr) {
        return {};
    }
    for (const GumboNode* span : find_html(*extras, [](const GumboNode& node) {
             return has_tag(node, GUMBO_TAG_SPAN) && html_attribute(node, "class").empty();
         })) {
        const std::string text = html_line(*span);
        if (text.size() >= 10 && text[4] == '-' && text[7] == '-') {
            return text.substr(0, 10);
        }
    }
    return {};
}

std::vector<WebResult> html_results(const GumboNode& document) {
    std::vector<WebResult> results;
    for (const GumboNode* node : find_html(document, [](const GumboNode& inner) {
             return has_class(inner, "result") && has_class(inner, "results_links");
         })) {
        const GumboNode* const link = first_of_class(*node, "result__a");
        if (link == nullptr || has_class(*node, "result--ad")) {
            continue;
        }
        if (auto url = target(html_attribute(*link, "href"))) {
            const GumboNode* const snippet = first_of_class(*node, "result__snippet");
            results.push_back({.title = html_line(*link),
                               .url = std::move(*url),
                               .snippet = snippet == nullptr ? "" : html_line(*snippet),
                               .published = published(*node)});
        }
    }
    return results;
}

/// Rows of one table: a link, then its snippet, then its address; those of advertisements are marked.
std::vector<WebResult> lite_results(const GumboNode& document) {
    std::vector<WebResult> results;
    bool open = false;
    for (const GumboNode* row :
         find_html(document, [](const GumboNode& node) { return has_tag(node, GUMBO_TAG_TR); })) {
        const GumboNode* const link = first_of_class(*row, "result-link");
        const GumboNode* const snippet = first_of_class(*row, "result-snippet");
        if (has_class(*row, "result-sponsored")) {
            open = false;
        } else if (link != nullptr) {
            auto url = target(html_attribute(*link, "href"));
            open = url.has_value();
            if (url) {
                results.push_back({.title = html_line(*link), .url = std::move(*url), .snippet = ""});
            }
        } else if (snippet != nullptr && open) {
            results.back().snippet = html_line(*snippet);
        }
    }
    return results;
}

bool is_result_page(const GumboNode& document) {
    return find_first_html(document, [](const GumboNode& node) {
               const std::string_view id = html_attribute(node, "id");
               return id == "links" || has_class(node, "no-results") || has_class(node, "result-link") ||
                      (has_tag(node, GUMBO_TAG_INPUT) && html_attribute(node, "name") == "q");
           }) != nullptr;
}

} // namespace

ResultPage parse_duckduckgo(std::string_view html) {
    const HtmlTree tree(html);
    const GumboNode& document = tree.document();
    ResultPage page;
    page.blocked = find_first_html(document, is_challenge) != nullptr;
    if (!page.blocked) {
        page.results = html_results(document);
        if (page.results.empty()) {
            page.results = lite_results(document);
        }
        page.recognised = !page.results.empty() || is_result_page(document);
    }
    return page;
}

} // namespace spool
