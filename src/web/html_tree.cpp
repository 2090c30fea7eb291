// gumbo frees its tree by recursion, which deep nesting turns into a stack overflow, and knows no limits. So
// it allocates from an arena that is dropped as a whole, and the arena leaves the parser by longjmp when a
// limit is reached: between setjmp and longjmp there are only C frames and functions without destructors.
#include "web/html_tree.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csetjmp>
#include <new>
#include <utility>

#include "core/error.h"
#include "web/plain_text.h"

namespace spool {

namespace {

/// Allocates by advancing, frees everything at its end.
class Arena {
  public:
    explicit Arena(const HtmlLimits& limits)
        : max_memory_(limits.max_memory),
          deadline_(std::chrono::steady_clock::now() +
                    std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                        std::chrono::duration<double>(limits.max_seconds))) {
        blocks_.reserve((max_memory_ / block_bytes) + 1);
    }

    /// nullptr when a limit is reached.
    void* allocate(size_t size) {
        constexpr size_t alignment = alignof(std::max_align_t);
        size = (size + alignment - 1) / alignment * alignment;
        if (size > left_ && !grow(size)) {
            return nullptr;
        }
        if (++allocations_ % 256 == 0 && std::chrono::steady_clock::now() > deadline_) {
            late_ = true;
            return nullptr;
        }
        left_ -= size;
        return std::exchange(next_, next_ + size);
    }

    bool late() const { return late_; }
    std::jmp_buf& exit() { return exit_; }

  private:
    static constexpr size_t block_bytes = size_t{1} << 20;

    /// Throws nothing: it is called from C.
    bool grow(size_t size) {
        const size_t bytes = std::max(size, block_bytes);
        if (bytes > max_memory_ - std::min(max_memory_, used_)) {
            return false;
        }
        std::unique_ptr<std::byte[]> block(new (std::nothrow) std::byte[bytes]);
        if (block == nullptr) {
            return false;
        }
        next_ = block.get();
        blocks_.push_back(std::move(block));
        left_ = bytes;
        used_ += bytes;
        return true;
    }

    size_t max_memory_;
    std::chrono::steady_clock::time_point deadline_;
    std::vector<std::unique_ptr<std::byte[]>> blocks_;
    std::byte* next_ = nullptr;
    size_t left_ = 0;
    size_t used_ = 0;
    size_t allocations_ = 0;
    bool late_ = false;
    std::jmp_buf exit_ = {};
};

void* allocate(void* arena, size_t size) {
    auto& own = *static_cast<Arena*>(arena);
    void* const memory = own.allocate(size);
    if (memory == nullptr) {
        std::longjmp(own.exit(), 1); // NOLINT(modernize-avoid-setjmp-longjmp,cert-err52-cpp): a C parser
    }
    return memory;
}

void release(void* /*arena*/, void* /*memory*/) {}

GumboOutput* parse(Arena& arena, const char* text, size_t size) {
    GumboOptions options = kGumboDefaultOptions;
    options.allocator = allocate;
    options.deallocator = release;
    options.userdata = &arena;
    options.max_errors = 0;
    // NOLINTNEXTLINE(modernize-avoid-setjmp-longjmp,cert-err52-cpp): as above
    return setjmp(arena.exit()) == 0 ? gumbo_parse_with_options(&options, text, size) : nullptr;
}

const GumboVector* children_of(const GumboNode& node) {
    switch (node.type) {
    case GUMBO_NODE_DOCUMENT:
        return &node.v.document.children;
    case GUMBO_NODE_ELEMENT:
    case GUMBO_NODE_TEMPLATE:
        return &node.v.element.children;
    default:
        return nullptr;
    }
}

const GumboNode& child_at(const GumboVector& children, unsigned index) {
    return *static_cast<const GumboNode*>(children.data[index]);
}

} // namespace

struct HtmlTree::Storage {
    Storage(const HtmlLimits& limits, std::string_view html) : arena(limits), text(html) {}

    Arena arena;
    std::string text; // the tree points into it
    GumboOutput* output = nullptr;
};

HtmlTree::HtmlTree(std::string_view html, const HtmlLimits& limits) {
    if (html.size() > limits.max_bytes) {
        fail(ErrorCode::unsupported, "the page has {} bytes of HTML, more than the {} that are read",
             html.size(), limits.max_bytes);
    }
    storage_ = std::make_unique<Storage>(limits, html);
    storage_->output = parse(storage_->arena, storage_->text.data(), storage_->text.size());
    if (storage_->output == nullptr) {
        fail(ErrorCode::unsupported, "the page's HTML ({} bytes) takes more than {} to read; it is left out",
             html.size(),
             storage_->arena.late() ? fmt::format("{} s", limits.max_seconds)
                                    : fmt::format("{} MiB", limits.max_memory >> 20U));
    }
}

HtmlTree::~HtmlTree() = default;
HtmlTree::HtmlTree(HtmlTree&& other) noexcept = default;
HtmlTree& HtmlTree::operator=(HtmlTree&& other) noexcept = default;

const GumboNode& HtmlTree::document() const { return *storage_->output->document; }

void walk_html(const GumboNode& top, const std::function<bool(const GumboNode&)>& enter,
               const std::function<void(const GumboNode&)>& leave) {
    struct Level {
        const GumboNode* node;
        unsigned next;
    };
    std::vector<Level> open;
    if (enter(top)) {
        open.push_back({&top, 0});
    }
    while (!open.empty()) {
        Level& level = open.back();
        const GumboVector* const children = children_of(*level.node);
        if (children == nullptr || level.next >= children->length) {
            if (leave) {
                leave(*level.node);
            }
            open.pop_back();
            continue;
        }
        const GumboNode& child = child_at(*children, level.next++);
        if (enter(child)) {
            open.push_back({&child, 0});
        }
    }
}

std::vector<const GumboNode*> find_html(const GumboNode& top,
                                        const std::function<bool(const GumboNode&)>& wanted) {
    std::vector<const GumboNode*> found;
    walk_html(top, [&](const GumboNode& node) {
        const bool match = wanted(node);
        if (match) {
            found.push_back(&node);
        }
        return !match;
    });
    return found;
}

const GumboNode* find_first_html(const GumboNode& top, const std::function<bool(const GumboNode&)>& wanted) {
    const GumboNode* found = nullptr;
    walk_html(top, [&](const GumboNode& node) {
        if (found == nullptr && wanted(node)) {
            found = &node;
        }
        return found == nullptr;
    });
    return found;
}

bool is_element(const GumboNode& node) { return node.type == GUMBO_NODE_ELEMENT; }

bool has_tag(const GumboNode& node, GumboTag tag) { return is_element(node) && node.v.element.tag == tag; }

bool has_class(const GumboNode& node, std::string_view name) {
    std::string_view rest = html_attribute(node, "class");
    constexpr std::string_view spaces = " \t\n\f\r";
    while (!rest.empty()) {
        const size_t end = std::min(rest.find_first_of(spaces), rest.size());
        if (rest.substr(0, end) == name) {
            return true;
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

std::string_view html_attribute(const GumboNode& node, const char* name) {
    const GumboAttribute* const attribute =
        is_element(node) ? gumbo_get_attribute(&node.v.element.attributes, name) : nullptr;
    return attribute == nullptr ? std::string_view() : std::string_view(attribute->value);
}

std::string_view html_characters(const GumboNode& node) {
    switch (node.type) {
    case GUMBO_NODE_TEXT:
    case GUMBO_NODE_CDATA:
    case GUMBO_NODE_WHITESPACE:
        return node.v.text.text;
    default:
        return {};
    }
}

std::string html_line(const GumboNode& node) {
    std::string text;
    walk_html(node, [&](const GumboNode& inner) {
        text += html_characters(inner);
        return inner.type != GUMBO_NODE_TEMPLATE && !has_tag(inner, GUMBO_TAG_SCRIPT) &&
               !has_tag(inner, GUMBO_TAG_STYLE);
    });
    return plain_line(text);
}

} // namespace spool
