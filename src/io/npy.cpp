#include "io/npy.hpp"

#include <cstring>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"

namespace clebsch {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t rank_limit = 64, header_limit = 1 << 16;

struct Descr {
    ElementType type;
    const char* text;
};
constexpr Descr descrs[] = {
    {ElementType::boolean, "|b1"},   {ElementType::uint8, "|u1"},       {ElementType::int8, "|i1"},    {ElementType::uint16, "<u2"},
    {ElementType::int16, "<i2"},     {ElementType::uint32, "<u4"},      {ElementType::int32, "<i4"},   {ElementType::uint64, "<u8"},
    {ElementType::int64, "<i8"},     {ElementType::float16, "<f2"},     {ElementType::float32, "<f4"}, {ElementType::float64, "<f8"},
    {ElementType::complex64, "<c8"}, {ElementType::complex128, "<c16"},
};

/// A cursor over the header's dict: {'descr': '<f4', 'fortran_order': False, 'shape': (89, 256), }
class Header {
 public:
    Header(std::string_view text, std::string_view file, std::int64_t offset) : text_(text), file_(file), offset_(offset) {}

    std::string descr;
    bool fortran_order = false;
    std::vector<std::int64_t> shape;

    void parse() {
        bool seen_descr = false, seen_order = false, seen_shape = false;
        expect('{');
        while (!accept('}')) {
            const std::string key = text();
            expect(':');
            if (key == "descr" && !seen_descr) {
                if (peek() != '\'' && peek() != '"') reject("expected the name of a number type (records are not read)");
                descr = text();
                seen_descr = true;
            } else if (key == "fortran_order" && !seen_order) {
                fortran_order = boolean();
                seen_order = true;
            } else if (key == "shape" && !seen_shape) {
                tuple();
                seen_shape = true;
            } else {
                reject("unexpected or repeated key " + in_quotes(key));
            }
            if (!accept(',') && peek() != '}') reject("expected ',' or '}'");
        }
        if (!seen_descr || !seen_order || !seen_shape) reject("expected the keys descr, fortran_order and shape");
        if (peek() != '\0') reject("unexpected text after the dict");
    }

 private:
    [[noreturn]] void reject(const std::string& message) const {
        fail_at_byte(file_, offset_ + static_cast<std::int64_t>(at_), ".npy header: " + message);
    }

    char peek() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool accept(char wanted) {
        if (peek() != wanted) return false;
        ++at_;
        return true;
    }
    void expect(char wanted) {
        if (!accept(wanted)) reject(std::string("expected '") + wanted + "'");
    }
    std::string text() {
        const char quote = peek();
        if (quote != '\'' && quote != '"') reject("expected a quoted string");
        const std::size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) reject("string without an end");
        std::string out(text_.substr(at_ + 1, end - at_ - 1));
        at_ = end + 1;
        return out;
    }
    bool boolean() {
        peek();
        for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
            if (text_.substr(at_, word.size()) == word) {
                at_ += word.size();
                return value;
            }
        }
        reject("expected True or False");
    }
    std::int64_t number() {
        if (peek() < '0' || peek() > '9') reject("expected a non-negative integer");
        std::int64_t value = 0;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
            if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
                reject("an axis is larger than 64 bits hold");
            ++at_;
        }
        return value;
    }
    void tuple() {
        expect('(');
        while (!accept(')')) {
            if (shape.size() == rank_limit) reject("more than " + std::to_string(rank_limit) + " axes");
            shape.push_back(number());
            if (!accept(',') && peek() != ')') reject("expected ',' or ')'");
        }
    }

    std::string_view text_, file_;
    std::int64_t offset_;
    std::size_t at_ = 0;
};

ElementType element_type(std::string_view descr, std::string_view file, std::int64_t offset) {
    for (const Descr& candidate : descrs) {
        const std::string_view text = candidate.text;
        // One-byte types have no byte order: any of |, <, > and = may stand in front.
        if (descr == text || (descr.size() == 3 && text[0] == '|' && descr.substr(1) == text.substr(1) &&
                              std::string_view("|<>=").find(descr[0]) != std::string_view::npos))
            return candidate.type;
    }
    const std::string what =
        descr.find('O') != std::string_view::npos ? "pickled objects are not read" : "expected little-endian numbers such as '<f4'";
    throw Error(ErrorKind::unsupported, "file " + in_quotes(file, 4096) + ", byte " + std::to_string(offset) + ": .npy array of type " +
                                            in_quotes(descr) + ": " + what);
}

/// Fortran order (first axis fastest) to C order.
std::vector<std::byte> reordered(const std::byte* from, const std::vector<std::int64_t>& shape, std::int64_t elements, std::int64_t size) {
    std::vector<std::byte> out(static_cast<std::size_t>(elements * size));
    std::vector<std::int64_t> index(shape.size(), 0), stride(shape.size());
    std::int64_t step = 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        stride[axis] = step;
        step *= shape[axis];
    }
    std::int64_t source = 0;
    for (std::int64_t i = 0; i < elements; ++i) {
        std::memcpy(out.data() + i * size, from + source * size, static_cast<std::size_t>(size));
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            source += stride[axis];
            if (++index[axis] < shape[axis]) break;
            source -= stride[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    return out;
}

}  // namespace

NpyArray parse_npy(std::string_view content, std::string_view file, std::int64_t begin) {
    const auto start = static_cast<std::size_t>(begin);
    if (begin < 0 || start > content.size()) fail("parse_npy: byte " + std::to_string(begin) + " is outside the content");
    const std::string_view rest = content.substr(start);
    const auto reject = [&](std::size_t at, const std::string& message) {
        fail_at_byte(file, begin + static_cast<std::int64_t>(at), message);
    };
    if (rest.substr(0, magic.size()) != magic)
        reject(0, "expected a .npy array (magic number \\x93NUMPY), got " + in_quotes(rest.substr(0, magic.size())));
    if (rest.size() < 10) reject(rest.size(), "the file ends inside a .npy header");
    const int major = static_cast<unsigned char>(rest[6]);
    if (major < 1 || major > 3) reject(6, ".npy version " + std::to_string(major) + ": expected 1, 2 or 3");
    const std::size_t length_bytes = major == 1 ? 2 : 4, header_begin = 8 + length_bytes;
    if (rest.size() < header_begin) reject(rest.size(), "the file ends inside a .npy header");
    std::size_t header_size = 0;
    for (std::size_t i = 0; i < length_bytes; ++i)
        header_size |= static_cast<std::size_t>(static_cast<unsigned char>(rest[8 + i])) << (8 * i);
    if (header_size > header_limit)
        reject(8, ".npy header of " + std::to_string(header_size) + " bytes: at most " + std::to_string(header_limit) + " are read");
    if (rest.size() - header_begin < header_size) reject(rest.size(), "the file ends inside a .npy header");

    Header header(rest.substr(header_begin, header_size), file, begin + static_cast<std::int64_t>(header_begin));
    header.parse();
    NpyArray out;
    out.array.type = element_type(header.descr, file, begin);
    out.array.shape = header.shape;
    const std::size_t data = header_begin + header_size;
    const std::optional<std::int64_t> bytes = byte_count(out.array.type, header.shape);
    if (!bytes || static_cast<std::uint64_t>(*bytes) > rest.size() - data)
        reject(data, ".npy array of shape " + to_text(header.shape) + " and type " + to_text(out.array.type) + ": the file has only " +
                         std::to_string(rest.size() - data) + " bytes left");
    const auto* from = reinterpret_cast<const std::byte*>(rest.data() + data);
    if (header.fortran_order && header.shape.size() > 1) {
        const std::int64_t size = size_of(out.array.type);
        out.array.bytes = reordered(from, header.shape, *bytes / size, size);
    } else {
        out.array.bytes.assign(from, from + *bytes);
    }
    out.end = begin + static_cast<std::int64_t>(data) + *bytes;
    return out;
}

Array read_npy(const std::filesystem::path& path) {
    const std::string content = read_file(path);
    NpyArray read = parse_npy(content, path.native());
    if (read.end != static_cast<std::int64_t>(content.size()))
        fail_at_byte(path.native(), read.end,
                     std::to_string(static_cast<std::int64_t>(content.size()) - read.end) + " bytes after the array");
    return std::move(read.array);
}

std::string format_npy(const Array& array) {
    const char* descr = nullptr;
    for (const Descr& candidate : descrs)
        if (candidate.type == array.type) descr = candidate.text;
    if (!descr) throw Error(ErrorKind::unsupported, ".npy has no name for " + to_text(array.type));
    std::string header = std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (";
    for (const std::int64_t extent : array.shape) header += std::to_string(extent) + ",";
    header += "), }";
    const std::size_t prefix = magic.size() + 4;
    header.append(63 - (prefix + header.size()) % 64, ' ');  // the numbers start at a multiple of 64
    header += '\n';
    std::string out(magic);
    out += {'\x01', '\x00', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
    out += header;
    out.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
    return out;
}

}  // namespace clebsch
