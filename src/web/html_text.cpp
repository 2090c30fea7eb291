#include "web/html_text.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include "web/plain_text.h"

namespace spool {

namespace {

bool is_one_of(GumboTag tag, std::initializer_list<GumboTag> tags) {
    return std::ranges::find(tags, tag) != tags.end();
}

bool is_left_out(GumboTag tag) {
    return is_one_of(tag, {GUMBO_TAG_SCRIPT, GUMBO_TAG_STYLE, GUMBO_TAG_NAV, GUMBO_TAG_HEAD, GUMBO_TAG_FOOTER,
                           GUMBO_TAG_NOSCRIPT, GUMBO_TAG_IFRAME, GUMBO_TAG_OBJECT, GUMBO_TAG_CANVAS,
                           GUMBO_TAG_SVG, GUMBO_TAG_VIDEO, GUMBO_TAG_AUDIO, GUMBO_TAG_BUTTON,
                           GUMBO_TAG_SELECT, GUMBO_TAG_INPUT, GUMBO_TAG_TEXTAREA});
}

bool is_block(GumboTag tag) {
    return is_one_of(tag, {GUMBO_TAG_P,       GUMBO_TAG_DIV,     GUMBO_TAG_SECTION,    GUMBO_TAG_ARTICLE,
                           GUMBO_TAG_MAIN,    GUMBO_TAG_ASIDE,   GUMBO_TAG_HEADER,     GUMBO_TAG_ADDRESS,
                           GUMBO_TAG_UL,      GUMBO_TAG_OL,      GUMBO_TAG_DL,         GUMBO_TAG_TABLE,
                           GUMBO_TAG_FIGURE,  GUMBO_TAG_DETAILS, GUMBO_TAG_BLOCKQUOTE, GUMBO_TAG_PRE,
                           GUMBO_TAG_CAPTION, GUMBO_TAG_HR,      GUMBO_TAG_FORM,       GUMBO_TAG_FIELDSET,
                           GUMBO_TAG_CENTER,  GUMBO_TAG_BODY,    GUMBO_TAG_HTML,       GUMBO_TAG_FIGCAPTION});
}

/// These start a line without an empty one before it.
bool is_line(GumboTag tag) {
    return is_one_of(tag, {GUMBO_TAG_LI, GUMBO_TAG_DT, GUMBO_TAG_DD, GUMBO_TAG_TR, GUMBO_TAG_SUMMARY,
                           GUMBO_TAG_OPTION, GUMBO_TAG_LEGEND});
}

bool is_cell(GumboTag tag) { return is_one_of(tag, {GUMBO_TAG_TD, GUMBO_TAG_TH}); }

/// 1 to 6 for h1 to h6, else 0.
int heading_level(GumboTag tag) {
    constexpr auto tags =
        std::to_array({GUMBO_TAG_H1, GUMBO_TAG_H2, GUMBO_TAG_H3, GUMBO_TAG_H4, GUMBO_TAG_H5, GUMBO_TAG_H6});
    const auto found = std::ranges::find(tags, tag);
    return found == tags.end() ? 0 : static_cast<int>(found - tags.begin()) + 1;
}

bool is_hidden(const GumboNode& node) {
    std::string style(html_attribute(node, "style"));
    std::erase_if(style, [](char letter) { return letter == ' ' || letter == '\t' || letter == '\n'; });
    return gumbo_get_attribute(&node.v.element.attributes, "hidden") != nullptr ||
           html_attribute(node, "aria-hidden") == "true" || style.find("display:none") != std::string::npos ||
           style.find("visibility:hidden") != std::string::npos;
}

/// "[1]" behind a number, "[edit]" behind a heading.
bool is_wiki_mark(const GumboNode& node) {
    return (has_tag(node, GUMBO_TAG_SUP) && has_class(node, "reference")) ||
           has_class(node, "mw-editsection");
}

bool is_read(const GumboNode& node) {
    return !is_element(node) ||
           (!is_left_out(node.v.element.tag) && html_attribute(node, "role") != "navigation" &&
            !is_hidden(node) && !is_wiki_mark(node));
}

/// Tables with a table inside.
std::unordered_set<const GumboNode*> layout_tables(const GumboNode& document) {
    std::unordered_set<const GumboNode*> layout;
    std::vector<const GumboNode*> open;
    walk_html(
        document,
        [&](const GumboNode& node) {
            if (has_tag(node, GUMBO_TAG_TABLE)) {
                if (!open.empty()) {
                    layout.insert(open.back());
                }
                open.push_back(&node);
            }
            return true;
        },
        [&](const GumboNode& node) {
            if (has_tag(node, GUMBO_TAG_TABLE)) {
                open.pop_back();
            }
        });
    return layout;
}

/// Collects lines; what is inside a cell stays on the row's line.
class Writer {
  public:
    explicit Writer(const GumboNode& document) : layout_(layout_tables(document)) {}

    bool enter(const GumboNode& node) {
        if (!is_element(node)) {
            add(html_characters(node));
            return node.type != GUMBO_NODE_TEMPLATE;
        }
        if (!is_read(node)) {
            return false;
        }
        const GumboTag tag = node.v.element.tag;
        if (tag == GUMBO_TAG_BR) {
            end_line();
        } else if (tag == GUMBO_TAG_TABLE) {
            end_block();
            tables_.push_back(layout_.contains(&node));
        } else if (is_cell(tag) && in_data_table()) {
            enter_cell();
        } else {
            enter_block(tag);
        }
        return true;
    }

    void leave(const GumboNode& node) {
        if (!is_element(node)) {
            return;
        }
        const GumboTag tag = node.v.element.tag;
        if (tag == GUMBO_TAG_TABLE) {
            tables_.pop_back();
            end_block();
        } else if (is_cell(tag) && in_data_table()) {
            cells_ -= std::min(cells_, 1);
        } else {
            leave_block(tag);
        }
    }

    std::string text() {
        end_line();
        return std::move(text_);
    }

  private:
    bool in_data_table() const { return !tables_.empty() && !tables_.back(); }
    bool in_cell() const { return cells_ > 0; }

    void enter_cell() {
        ++cells_;
        if (line_has_text_) {
            line_ += " | ";
        }
    }

    void enter_block(GumboTag tag) {
        if (const int level = heading_level(tag); level > 0) {
            end_block();
            prefix_ = in_cell() ? "" : std::string(static_cast<size_t>(level), '#') + " ";
        } else if (tag == GUMBO_TAG_UL || tag == GUMBO_TAG_OL) {
            end_line_or_block();
            ++lists_;
        } else if (is_block(tag)) {
            pre_ += tag == GUMBO_TAG_PRE ? 1 : 0;
            end_line_or_block();
        } else if (is_line(tag)) {
            end_line();
            if (tag == GUMBO_TAG_LI && !in_cell()) {
                constexpr int deepest = 8;
                prefix_ =
                    std::string(static_cast<size_t>(2 * std::clamp(lists_ - 1, 0, deepest)), ' ') + "- ";
            }
        }
    }

    void leave_block(GumboTag tag) {
        if (heading_level(tag) > 0) {
            end_block();
        } else if (tag == GUMBO_TAG_UL || tag == GUMBO_TAG_OL) {
            --lists_;
            end_line_or_block();
        } else if (is_block(tag)) {
            end_line_or_block();
            pre_ -= tag == GUMBO_TAG_PRE ? 1 : 0;
        } else if (is_line(tag)) {
            end_line();
        }
    }

    void add(std::string_view characters) {
        line_has_text_ =
            line_has_text_ || characters.find_first_not_of(" \t\n\f\r") != std::string_view::npos;
        if (pre_ == 0 || in_cell()) {
            line_ += characters;
            return;
        }
        for (const char letter : characters) {
            if (letter == '\n') {
                end_line();
            } else {
                line_ += letter;
            }
        }
    }

    /// Writes the line unless it is empty. In a cell it only separates words.
    void end_line() {
        if (in_cell()) {
            line_ += ' ';
            return;
        }
        const std::string line = pre_ > 0 ? without_controls(line_) : plain_line(line_);
        line_.clear();
        line_has_text_ = false;
        if (plain_line(line).empty()) {
            return;
        }
        if (!text_.empty()) {
            text_ += block_ended_ ? "\n\n" : "\n";
        }
        text_ += prefix_ + line;
        prefix_.clear();
        block_ended_ = false;
    }

    void end_block() {
        end_line();
        if (!in_cell()) {
            block_ended_ = true;
            prefix_.clear();
        }
    }

    void end_line_or_block() {
        if (lists_ > 0) {
            end_line();
        } else {
            end_block();
        }
    }

    std::unordered_set<const GumboNode*> layout_;
    std::vector<bool> tables_; ///< the open ones: true if layout
    std::string text_;
    std::string line_;
    std::string prefix_; ///< of the next line
    bool line_has_text_ = false;
    bool block_ended_ = false;
    int lists_ = 0;
    int cells_ = 0;
    int pre_ = 0;
};

std::string text_of(const GumboNode& top, const GumboNode& document) {
    Writer writer(document);
    walk_html(
        top, [&](const GumboNode& node) { return writer.enter(node); },
        [&](const GumboNode& node) { writer.leave(node); });
    return writer.text();
}

bool is_main_part(const GumboNode& node) {
    return has_tag(node, GUMBO_TAG_MAIN) || html_attribute(node, "role") == "main";
}

std::string title_of(const GumboNode& document) {
    for (const GumboTag tag : {GUMBO_TAG_TITLE, GUMBO_TAG_H1}) {
        const GumboNode* const node = find_first_html(document, [&](const GumboNode& inner) {
            return has_tag(inner, tag) && inner.v.element.tag_namespace == GUMBO_NAMESPACE_HTML;
        });
        if (node != nullptr && !html_line(*node).empty()) {
            return html_line(*node);
        }
    }
    return {};
}

} // namespace

HtmlText html_to_text(std::string_view html, const HtmlLimits& limits) {
    const HtmlTree tree(html, limits);
    const GumboNode& document = tree.document();
    HtmlText page{title_of(document), {}};
    const auto main_parts = find_html(document, is_main_part);
    if (main_parts.size() == 1) {
        page.text = text_of(*main_parts.front(), document);
    }
    if (page.text.empty()) {
        page.text = text_of(document, document);
    }
    return page;
}

} // namespace spool
