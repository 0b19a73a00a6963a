#include "io/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "io/json.hpp"

namespace clebsch {

namespace {

struct TypeName {
    ElementType type;
    const char* text;
};
constexpr TypeName type_names[] = {
    {ElementType::boolean, "BOOL"},
    {ElementType::uint8, "U8"},
    {ElementType::int8, "I8"},
    {ElementType::uint16, "U16"},
    {ElementType::int16, "I16"},
    {ElementType::uint32, "U32"},
    {ElementType::int32, "I32"},
    {ElementType::uint64, "U64"},
    {ElementType::int64, "I64"},
    {ElementType::float8_e4m3, "F8_E4M3"},
    {ElementType::float8_e5m2, "F8_E5M2"},
    {ElementType::float8_e8m0, "F8_E8M0"},
    {ElementType::float16, "F16"},
    {ElementType::bfloat16, "BF16"},
    {ElementType::float32, "F32"},
    {ElementType::float64, "F64"},
    {ElementType::complex64, "C64"},
};
constexpr std::int64_t length_bytes = 8;
constexpr std::size_t rank_limit = 64;

std::uint64_t read_length(std::string_view start) {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < 8; ++i) out |= static_cast<std::uint64_t>(static_cast<unsigned char>(start[i])) << (8 * i);
    return out;
}

TensorEntry read_entry(const std::string& name, const nlohmann::json& value, std::int64_t data_size, std::string_view file) {
    const std::string where = "tensor " + in_quotes(name) + ": ";
    try {
        const JsonObject json(value, file);
        for (const std::string& key : json.keys())
            if (key != "dtype" && key != "shape" && key != "data_offsets") fail_in_file(file, "unknown key " + in_quotes(key));
        TensorEntry entry;
        entry.name = name;
        const std::string type = json.text("dtype");
        const auto* known =
            std::find_if(std::begin(type_names), std::end(type_names), [&](const TypeName& each) { return each.text == type; });
        if (known == std::end(type_names))
            throw Error(ErrorKind::unsupported,
                        "file " + in_quotes(file, 4096) + ": dtype " + in_quotes(type) + " is not one that is read");
        entry.type = known->type;
        entry.shape = json.integers("shape");
        const std::vector<std::int64_t> offsets = json.integers("data_offsets");
        if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] || offsets[1] > data_size)
            fail_in_file(file, "data_offsets " + to_text(offsets) + ": expected begin and end within the " + std::to_string(data_size) +
                                   " bytes after the header");
        entry.begin = offsets[0];
        entry.end = offsets[1];
        const std::optional<std::int64_t> bytes = entry.shape.size() > rank_limit ? std::nullopt : byte_count(entry.type, entry.shape);
        if (!bytes || *bytes != entry.end - entry.begin)
            fail_in_file(file, "shape " + to_text(entry.shape) + " of " + type + " does not fill data_offsets " + to_text(offsets));
        return entry;
    } catch (const Error& error) {
        // The message starts with the file; put the tensor behind it.
        throw Error(error.kind(), std::string(error.what()) + " (in " + where.substr(0, where.size() - 2) + ")");
    }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view start, std::int64_t file_size, std::string_view file) {
    if (file_size < length_bytes || start.size() < static_cast<std::size_t>(length_bytes))
        fail_at_byte(file, file_size, "the file is shorter than the 8 bytes of the header's length");
    const std::uint64_t length = read_length(start);
    if (length > static_cast<std::uint64_t>(safetensors_header_limit))
        fail_at_byte(file, 0,
                     "a header of " + std::to_string(length) + " bytes: at most " + std::to_string(safetensors_header_limit) +
                         " are read (is this a safetensors file?)");
    if (length > static_cast<std::uint64_t>(file_size - length_bytes) || length > start.size() - static_cast<std::size_t>(length_bytes))
        fail_at_byte(file, file_size, "the file ends inside its header of " + std::to_string(length) + " bytes");
    SafetensorsHeader out;
    out.data_begin = length_bytes + static_cast<std::int64_t>(length);
    const std::string_view text = start.substr(static_cast<std::size_t>(length_bytes), static_cast<std::size_t>(length));
    if (text.empty() || text.front() != '{') fail_at_byte(file, length_bytes, "expected a JSON object");
    const nlohmann::json value = parse_json(text, file, length_bytes);
    const std::int64_t data_size = file_size - out.data_begin;
    for (const auto& [name, item] : value.items()) {
        if (name == "__metadata__") {
            const JsonObject metadata(item, file);
            for (const std::string& key : metadata.keys()) out.metadata[key] = metadata.text(key);
        } else {
            out.tensors.push_back(read_entry(name, item, data_size, file));
        }
    }
    std::sort(out.tensors.begin(), out.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
        return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    std::int64_t at = 0;
    for (const TensorEntry& entry : out.tensors) {
        if (entry.begin != at)
            fail_at_byte(file, out.data_begin + std::min(entry.begin, at),
                         "tensor " + in_quotes(entry.name) + " begins at offset " + std::to_string(entry.begin) + ", " +
                             (entry.begin < at ? "inside the one before it, which ends at " : "after a hole from ") + std::to_string(at));
        at = entry.end;
    }
    if (at != data_size) fail_at_byte(file, out.data_begin + at, std::to_string(data_size - at) + " bytes after the last tensor");
    return out;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe, which is refused below, is not waited for
    if (descriptor_ < 0) {
        const int code = errno;
        throw Error(code == ENOENT || code == ENOTDIR ? ErrorKind::not_found : ErrorKind::io,
                    "cannot open file " + in_quotes(path.native(), 4096) + ": " + std::system_category().message(code));
    }
    try {
        struct stat status {};
        if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode))
            throw Error(ErrorKind::io, "cannot read file " + in_quotes(path.native(), 4096) + ": not an ordinary file");
        const auto read_at_start = [&](std::int64_t size) {
            std::string out(static_cast<std::size_t>(std::min<std::int64_t>(size, status.st_size)), '\0');
            std::size_t have = 0;
            while (have < out.size()) {
                const ssize_t got = ::pread(descriptor_, out.data() + have, out.size() - have, static_cast<off_t>(have));
                if (got < 0 && errno == EINTR) continue;
                if (got <= 0) break;
                have += static_cast<std::size_t>(got);
            }
            out.resize(have);
            return out;
        };
        std::string start = read_at_start(length_bytes);
        if (start.size() == static_cast<std::size_t>(length_bytes))
            if (const std::uint64_t length = read_length(start); length <= static_cast<std::uint64_t>(safetensors_header_limit))
                start = read_at_start(length_bytes + static_cast<std::int64_t>(length));
        header_ = parse_safetensors_header(start, status.st_size, path.native());
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), header_(std::move(other.header_)) {}
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(header_, other.header_);
    return *this;
}
SafetensorsFile::~SafetensorsFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

bool SafetensorsFile::has(std::string_view name) const {
    return std::any_of(header_.tensors.begin(), header_.tensors.end(), [&](const TensorEntry& entry) { return entry.name == name; });
}

Array SafetensorsFile::load(std::string_view name) const {
    for (const TensorEntry& entry : header_.tensors)
        if (entry.name == name) return load(entry);
    throw Error(ErrorKind::not_found, "file " + in_quotes(path_.native(), 4096) + " has no tensor " + in_quotes(name));
}

Array SafetensorsFile::load(const TensorEntry& entry) const {
    if (entry.begin < 0 || entry.end < entry.begin || byte_count(entry.type, entry.shape) != entry.end - entry.begin)
        fail("safetensors: an entry that is not of this file's header");
    Array out{entry.type, entry.shape, {}};
    out.bytes.resize(static_cast<std::size_t>(entry.end - entry.begin));
    std::size_t have = 0;
    while (have < out.bytes.size()) {
        const ssize_t got = ::pread(descriptor_, out.bytes.data() + have, out.bytes.size() - have,
                                    static_cast<off_t>(header_.data_begin + entry.begin) + static_cast<off_t>(have));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            throw Error(ErrorKind::io, "file " + in_quotes(path_.native(), 4096) + ", tensor " + in_quotes(entry.name) + ": cannot read " +
                                           std::to_string(out.bytes.size() - have) + " of its bytes; was the file changed?");
        have += static_cast<std::size_t>(got);
    }
    return out;
}

std::string format_safetensors(const std::vector<NamedArray>& tensors, const std::map<std::string, std::string>& metadata) {
    std::vector<const NamedArray*> order;
    for (const NamedArray& each : tensors) {
        if (each.name == "__metadata__") fail("safetensors: a tensor cannot be named '__metadata__'");
        if (byte_count(each.array.type, each.array.shape) != static_cast<std::int64_t>(each.array.bytes.size()))
            fail("safetensors: tensor " + in_quotes(each.name) + ": shape " + to_text(each.array.shape) + " of " +
                 to_text(each.array.type) + " does not hold " + std::to_string(each.array.bytes.size()) + " bytes");
        order.push_back(&each);
    }
    std::sort(order.begin(), order.end(), [](const NamedArray* a, const NamedArray* b) {
        const std::int64_t size_a = size_of(a->array.type), size_b = size_of(b->array.type);
        return size_a != size_b ? size_a > size_b : a->name < b->name;
    });
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::int64_t at = 0;
    for (const NamedArray* each : order) {
        const auto* known = std::find_if(std::begin(type_names), std::end(type_names),
                                         [&](const TypeName& entry) { return entry.type == each->array.type; });
        if (known == std::end(type_names)) throw Error(ErrorKind::unsupported, "safetensors has no dtype for " + to_text(each->array.type));
        if (header.contains(each->name)) fail("safetensors: two tensors are named " + in_quotes(each->name));
        const std::int64_t end = at + static_cast<std::int64_t>(each->array.bytes.size());
        header[each->name] = {{"dtype", known->text}, {"shape", each->array.shape}, {"data_offsets", {at, end}}};
        at = end;
    }
    std::string text;
    try {
        text = header.dump();
    } catch (const nlohmann::json::exception&) { fail("safetensors: a name or a metadata text is not UTF-8"); }
    text.append((8 - text.size() % 8) % 8, ' ');
    if (text.size() > static_cast<std::size_t>(safetensors_header_limit))
        throw Error(ErrorKind::unsupported, "safetensors: the header would have " + std::to_string(text.size()) + " bytes");
    std::string out;
    out.reserve(8 + text.size() + static_cast<std::size_t>(at));
    for (std::size_t i = 0; i < 8; ++i) out += static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 255);
    out += text;
    for (const NamedArray* each : order) out.append(reinterpret_cast<const char*>(each->array.bytes.data()), each->array.bytes.size());
    return out;
}

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedArray>& tensors,
                       const std::map<std::string, std::string>& metadata) {
    write_file(path, format_safetensors(tensors, metadata));
}

}  // namespace clebsch
