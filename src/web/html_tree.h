// HTML as a tree, by the gumbo parser, bounded in memory, time and stack whatever the bytes are.
#pragma once

#include <cstddef>
#include <functional>
#include <gumbo.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spool {

/// A page beyond these is refused, not cut: what a parser makes of half a page is not what its author wrote.
struct HtmlLimits {
    size_t max_bytes = size_t{8} << 20;    ///< of the page
    size_t max_memory = size_t{256} << 20; ///< of its tree
    double max_seconds = 5;                ///< of parsing: hostile nesting costs the square of its depth
};

/// Owns the tree of a page. Movable, not copyable.
class HtmlTree {
  public:
    /// `html` is UTF-8; other bytes become U+FFFD. No page is so broken that there is no tree.
    /// Throws Error{unsupported} beyond `limits`.
    explicit HtmlTree(std::string_view html, const HtmlLimits& limits = {});
    ~HtmlTree();
    HtmlTree(HtmlTree&& other) noexcept;
    HtmlTree& operator=(HtmlTree&& other) noexcept;
    HtmlTree(const HtmlTree&) = delete;
    HtmlTree& operator=(const HtmlTree&) = delete;

    /// The document node; it lives as long as the tree.
    const GumboNode& document() const;

  private:
    struct Storage;
    std::unique_ptr<Storage> storage_;
};

/// Visits `top` and what is under it in document order, without recursion. `enter` says whether to look into
/// a node; `leave` is called for every node that was looked into, after its children.
void walk_html(const GumboNode& top, const std::function<bool(const GumboNode&)>& enter,
               const std::function<void(const GumboNode&)>& leave = nullptr);

/// Those under `top` that `wanted` accepts, in document order; nothing is looked for inside of them.
std::vector<const GumboNode*> find_html(const GumboNode& top,
                                        const std::function<bool(const GumboNode&)>& wanted);
/// The first of them, or nullptr.
const GumboNode* find_first_html(const GumboNode& top, const std::function<bool(const GumboNode&)>& wanted);

bool is_element(const GumboNode& node);
bool has_tag(const GumboNode& node, GumboTag tag);
bool has_class(const GumboNode& node, std::string_view name);
/// The value of the attribute `name` (lower case), empty if there is none.
std::string_view html_attribute(const GumboNode& node, const char* name);
/// The characters of a text node; empty for every other node.
std::string_view html_characters(const GumboNode& node);
/// All text under `node` but scripts, styles and templates, on one line (plain_line).
std::string html_line(const GumboNode& node);

} // namespace spool
