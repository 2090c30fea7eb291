// A page as a browser shows it: Chromium through chromedriver (W3C WebDriver).
#pragma once

#include <atomic>
#include <chrono>
#include <string>

namespace spool {

struct BrowserOptions {
    std::string driver = "chromedriver"; ///< a program on the PATH, or its path
    std::chrono::milliseconds timeout{30'000};
    const std::atomic<bool>* interrupted = nullptr;
};

struct BrowserPage {
    std::string url;  ///< after the redirects
    std::string html; ///< the document as its scripts made it, UTF-8
};

/// Starts a driver and a browser with an empty profile, opens `url`, and ends both. Unlike http_get it asks
/// whatever the page refers to, so it is for the sites of search engines alone. Throws Error{unsupported} if
/// there is no driver or no browser, Error{io} if the page cannot be reached or is not there in time,
/// Error{interrupted}.
BrowserPage browse(const std::string& url, const BrowserOptions& options);

} // namespace spool
