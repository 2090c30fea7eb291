#include "web/charset.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iconv.h>
#include <vector>

#include "web/html_tree.h"

namespace spool {

namespace {

struct Label {
    std::string_view name; ///< on the web, lower case
    const char* iconv;
};

/// The web's names whose meaning differs from iconv's (WHATWG Encoding). Others are looked up by prefix.
constexpr auto labels = std::to_array<Label>({
    {"ascii", "WINDOWS-1252"},
    {"us-ascii", "WINDOWS-1252"},
    {"iso-8859-1", "WINDOWS-1252"},
    {"iso8859-1", "WINDOWS-1252"},
    {"latin1", "WINDOWS-1252"},
    {"cp1252", "WINDOWS-1252"},
    {"iso-8859-9", "WINDOWS-1254"},
    {"latin5", "WINDOWS-1254"},
    {"iso-8859-11", "WINDOWS-874"},
    {"tis-620", "WINDOWS-874"},
    {"utf8", "UTF-8"},
    {"utf-8", "UTF-8"},
    {"unicode-1-1-utf-8", "UTF-8"},
    {"utf-16", "UTF-16LE"},
    {"utf-16le", "UTF-16LE"},
    {"utf-16be", "UTF-16BE"},
    {"gb2312", "GB18030"},
    {"gbk", "GB18030"},
    {"gb18030", "GB18030"},
    {"x-gbk", "GB18030"},
    {"big5", "BIG5-HKSCS"},
    {"big5-hkscs", "BIG5-HKSCS"},
    {"shift_jis", "CP932"},
    {"shift-jis", "CP932"},
    {"sjis", "CP932"},
    {"x-sjis", "CP932"},
    {"windows-31j", "CP932"},
    {"euc-jp", "EUC-JP"},
    {"x-euc-jp", "EUC-JP"},
    {"iso-2022-jp", "ISO-2022-JP"},
    {"euc-kr", "CP949"},
    {"ks_c_5601-1987", "CP949"},
    {"windows-949", "CP949"},
    {"koi8-r", "KOI8-R"},
    {"koi8-u", "KOI8-U"},
    {"macintosh", "MACINTOSH"},
    {"ibm866", "IBM866"},
    {"cp1251", "WINDOWS-1251"},
    {"cp1250", "WINDOWS-1250"},
    {"windows-874", "WINDOWS-874"},
    {"x-user-defined", "ISO-8859-1"},
});

std::string lower(std::string_view text) {
    std::string small(text);
    std::ranges::transform(small, small.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    });
    return small;
}

/// iconv's name for a charset of the web, empty if it is none: iconv knows many more, UTF-7 among them, which
/// would let bytes that were checked as one thing be read as another.
std::string iconv_name(const std::string& charset) {
    const auto known = std::ranges::find(labels, charset, &Label::name);
    if (known != labels.end()) {
        return known->iconv;
    }
    const bool family = charset.starts_with("windows-125") || charset.starts_with("iso-8859-");
    const bool plain = std::ranges::all_of(charset, [](char letter) {
        return letter == '-' || (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z');
    });
    return family && plain ? charset : std::string();
}

bool is_single_byte(const std::string& name) {
    constexpr auto wide =
        std::to_array<std::string_view>({"UTF-8", "UTF-16LE", "UTF-16BE", "GB18030", "BIG5-HKSCS", "CP932",
                                         "EUC-JP", "ISO-2022-JP", "CP949"});
    return std::ranges::find(wide, name) == wide.end();
}

struct Decoded {
    std::string text;
    size_t errors = 0;
};

class Converter {
  public:
    explicit Converter(const std::string& from) : handle_(::iconv_open("UTF-8", from.c_str())) {}
    ~Converter() {
        if (known()) {
            ::iconv_close(handle_);
        }
    }
    Converter(const Converter&) = delete;
    Converter& operator=(const Converter&) = delete;

    bool known() const { return handle_ != failed(); }

    Decoded decode(std::string_view bytes) {
        Decoded decoded;
        decoded.text.reserve(bytes.size() + (bytes.size() / 2));
        std::string input(bytes); // iconv's interface wants it writable
        char* next = input.data();
        size_t left = input.size();
        std::array<char, 4096> buffer{};
        while (left > 0) {
            char* out = buffer.data();
            size_t room = buffer.size();
            const size_t result = ::iconv(handle_, &next, &left, &out, &room);
            const int error = errno;
            decoded.text.append(buffer.data(), buffer.size() - room);
            if (result == static_cast<size_t>(-1) && error != E2BIG) {
                decoded.text += "\uFFFD";
                ++decoded.errors;
                const size_t skipped =
                    error == EINVAL ? left : 1; // cut off at the end, or not of this charset
                next += skipped;
                left -= skipped;
            }
        }
        return decoded;
    }

  private:
    static iconv_t failed() {
        return reinterpret_cast<iconv_t>(-1); // NOLINT(performance-no-int-to-ptr): POSIX's own value
    }

    iconv_t handle_;
};

/// Whether a text that is not wholly UTF-8 is mostly so: cut or spoilt somewhere, rather than of another
/// charset.
bool is_mostly_utf8(const Decoded& utf8) {
    const auto starts = std::ranges::count_if(
        utf8.text, [](char byte) { return static_cast<unsigned char>(byte) >= 0xC0; }); // U+FFFD's among them
    return static_cast<size_t>(starts) > 2 * utf8.errors;
}

std::optional<Decoded> decode(std::string_view bytes, const std::string& name) {
    Converter converter(name);
    return converter.known() ? std::optional(converter.decode(bytes)) : std::nullopt;
}

/// What the page says of itself within its first bytes, as browsers look for it.
std::string meta_charset(std::string_view bytes) {
    constexpr size_t looked_at = 4096;
    const HtmlTree tree(bytes.substr(0, looked_at));
    std::string charset;
    find_first_html(tree.document(), [&](const GumboNode& node) {
        if (has_tag(node, GUMBO_TAG_META) && charset.empty()) {
            charset = lower(html_attribute(node, "charset"));
            if (charset.empty() && lower(html_attribute(node, "http-equiv")) == "content-type") {
                charset = charset_parameter(html_attribute(node, "content"));
            }
        }
        return !charset.empty();
    });
    // A page that could be searched as bytes is not in UTF-16, whatever it says.
    return charset.starts_with("utf-16") ? "utf-8" : charset;
}

std::optional<std::string> marked(std::string_view bytes) {
    for (const auto& [mark, name] : {std::pair<std::string_view, const char*>{"\xEF\xBB\xBF", "UTF-8"},
                                     {"\xFE\xFF", "UTF-16BE"},
                                     {"\xFF\xFE", "UTF-16LE"}}) {
        if (bytes.starts_with(mark)) {
            if (auto decoded = decode(bytes.substr(mark.size()), name)) {
                return std::move(decoded->text);
            }
        }
    }
    return std::nullopt;
}

} // namespace

std::string charset_parameter(std::string_view content_type) {
    std::string value = lower(content_type);
    constexpr std::string_view name = "charset";
    value.erase(0, value.find(name)); // all, if it is not there
    value.erase(0, name.size());
    value.erase(0, value.find_first_not_of(" \t"));
    if (!value.starts_with('=')) {
        return {};
    }
    value.erase(0, 1);
    constexpr std::string_view around = " \t\"'";
    value.erase(0, std::min(value.find_first_not_of(around), value.size()));
    value.erase(std::min(value.find_first_of(" \t\"';,"), value.size()));
    return value;
}

std::string to_utf8(std::string_view bytes, const std::string& declared, bool html) {
    if (auto text = marked(bytes)) {
        return std::move(*text);
    }
    std::vector<std::string> candidates = {iconv_name(lower(declared))};
    if (html) {
        candidates.push_back(iconv_name(meta_charset(bytes)));
    }
    std::erase(candidates, "");
    auto utf8 = decode(bytes, "UTF-8");
    const bool is_utf8 = utf8 && utf8->errors == 0;
    std::optional<Decoded> best;
    for (const std::string& name : candidates) {
        if ((is_utf8 && is_single_byte(name)) ||
            (name == "UTF-8" && utf8 && !is_utf8 && !is_mostly_utf8(*utf8))) {
            continue; // it says what it is not
        }
        auto decoded = decode(bytes, name);
        if (decoded && decoded->errors == 0) {
            return std::move(decoded->text);
        }
        if (decoded && !best) {
            best = std::move(decoded);
        }
    }
    if (is_utf8) {
        return std::move(utf8->text);
    }
    if (!best) {
        best = decode(bytes, "WINDOWS-1252");
    }
    return best ? std::move(best->text) : std::string(bytes);
}

} // namespace spool
