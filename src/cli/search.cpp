// `spool search`: what the web says, as results with their sources, or one page as text.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "cli/command.h"
#include "core/log.h"
#include "web/plain_text.h"
#include "web/url.h"
#include "web/web_search.h"

namespace spool::cli {

namespace {

struct SearchArguments {
    std::string query;
    bool no_cache = false;
    std::string contact;
    WebSearchOptions options;
};

Json as_json(const WebSearchReply& reply, const std::string& query) {
    Json results = Json::array();
    for (const WebResult& result : reply.results) {
        results.push_back({{"title", result.title},
                           {"url", result.url},
                           {"snippet", result.snippet},
                           {"text", result.text},
                           {"published", result.published},
                           {"engine", result.engine},
                           {"fetched", result.fetched}});
    }
    return {{"query", query}, {"results", std::move(results)}, {"notes", reply.notes}};
}

void print_text(const WebSearchReply& reply) {
    for (size_t i = 0; i < reply.results.size(); ++i) {
        const WebResult& result = reply.results[i];
        fmt::print("[{}] {}\n    {}\n    {}\n", i + 1, result.title, result.url, result.snippet);
        if (!result.text.empty()) {
            fmt::print("\n{}\n", result.text);
        }
        fmt::print("\n");
    }
}

void read_page(WebSearch& search, const std::string& url, const Global& global) {
    const HtmlText page = search.read(url);
    if (global.json) {
        print_json({{"url", url}, {"title", page.title}, {"text", page.text}});
    } else {
        fmt::print("{}{}{}\n", page.title, page.title.empty() ? "" : "\n\n", page.text);
    }
}

void run(SearchArguments& arguments, Global& global) {
    catch_interrupts();
    arguments.options.fetch.http.interrupted = &interrupted();
    arguments.options.browser.interrupted = &interrupted();
    if (!arguments.contact.empty()) {
        arguments.options.fetch.http.user_agent = fmt::format("spool ({})", plain_line(arguments.contact));
    }
    if (!arguments.no_cache) {
        arguments.options.cache = default_web_cache();
    }
    WebSearch search(arguments.options);
    if (parse_url(arguments.query)) {
        read_page(search, arguments.query, global);
        return;
    }
    const WebSearchReply reply = search.search(arguments.query);
    if (global.json) {
        print_json(as_json(reply, arguments.query));
    } else {
        print_text(reply);
    }
    for (const std::string& note : reply.notes) {
        log_info("{}", note);
    }
    if (reply.results.empty()) {
        log_warning("nothing was found");
        global.exit_code = exit_failure;
    }
}

} // namespace

void add_search(CLI::App& app, Global& global) {
    auto arguments = std::make_shared<SearchArguments>();
    WebSearchOptions& options = arguments->options;
    CLI::App* command = app.add_subcommand("search", "ask the web, or read one page as text");
    command->footer(
        "Without a key or an account. Only public addresses are asked, a host once a second; an engine that\n"
        "shows a challenge is left alone for a while. Pages are kept for a day in ~/.cache/spool/web.\n"
        "Example: spool search \"height of Mount Fuji\" --pages 2\n"
        "         spool search https://en.wikipedia.org/wiki/Mount_Fuji");
    command->add_option("QUERY", arguments->query, "a question, or a page's address")->required();
    command
        ->add_option("--engine", options.engines,
                     "duckduckgo, wikipedia, bing (through Chromium); several: in this order")
        ->delimiter(',')
        ->capture_default_str();
    command->add_option("--results", options.results, "of each engine, at most")
        ->check(CLI::Range(size_t{1}, size_t{50}))
        ->capture_default_str();
    command->add_option("--articles", options.articles, "Wikipedia articles to read whole")
        ->capture_default_str();
    command->add_option("--pages", options.pages, "pages of the other results to read")
        ->capture_default_str();
    command->add_option("--wikipedia", options.sites.wikipedia, "its site, for another language")
        ->capture_default_str();
    command
        ->add_option("--contact", arguments->contact,
                     "whom an operator can write to; sent with every request (SPOOL_CONTACT)")
        ->envname("SPOOL_CONTACT");
    command->add_option("--allow-address", options.fetch.http.allowed,
                        "IP:PORT that may be asked although it is not public, for a wiki of one's own");
    command->add_option("--driver", options.browser.driver, "chromedriver's path, for bing")
        ->capture_default_str();
    command->add_flag("--no-cache", arguments->no_cache, "neither read nor keep pages on disk");
    command->callback([arguments, &global] { run(*arguments, global); });
}

} // namespace spool::cli
