// A page as text that can be read and cut into sentences.
#pragma once

#include <string>
#include <string_view>

#include "web/html_tree.h"

namespace spool {

struct HtmlText {
    std::string title; ///< the page's title, else its first heading; one line
    /// One line a paragraph; an empty line between blocks. Headings start with "# " to "###### ", list items
    /// with "- " (two spaces more a level), table rows are one line with " | " between the cells; tables that
    /// hold tables are layout and read as blocks. Preformatted text keeps its lines.
    std::string text;
};

/// Reads `html` (UTF-8). Left out: scripts, styles, navigation, forms, footers, what is hidden by attribute
/// or inline style, reference marks and edit links of wikis. If the page marks one part as its main one and
/// there is text in it, only that is read. Throws as HtmlTree does.
HtmlText html_to_text(std::string_view html, const HtmlLimits& limits = {});

} // namespace spool
