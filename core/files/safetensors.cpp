// SPDX-License-Identifier: Apache-2.0
#include "core/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::files {

using nlohmann::json;

static constexpr int64_t kLengthBytes = 8;
static constexpr int64_t kMaxHeaderBytes = 100'000'000; // of the reference implementation
static constexpr int64_t kDataAlignmentBytes = 4096;
static constexpr std::string_view kMetadata = "__metadata__";

namespace {

struct TypeText
{
    std::string_view text;
    int64_t bytes;
};

/// In the order of TensorType.
constexpr TypeText kTypes[] = {{"F32", 4}, {"BF16", 2}, {"F16", 2},  {"F64", 8},     {"I64", 8},
                               {"I32", 4}, {"I16", 2},  {"I8", 1},   {"U64", 8},     {"U32", 4},
                               {"U16", 2}, {"U8", 1},   {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

} // namespace

std::string_view toText(TensorType type)
{
    return kTypes[static_cast<size_t>(type)].text;
}

std::optional<TensorType> tensorTypeFrom(std::string_view text)
{
    const auto *found = std::ranges::find(kTypes, text, &TypeText::text);
    if (found == std::end(kTypes))
        return std::nullopt;
    return static_cast<TensorType>(found - std::begin(kTypes));
}

int64_t elementBytes(TensorType type)
{
    return kTypes[static_cast<size_t>(type)].bytes;
}

/// shape × bytes of an element, or nothing where it does not fit 63 bits or a size is negative.
static std::optional<int64_t> bytesOf(const std::vector<int64_t> &sizes, TensorType type)
{
    int64_t bytes = elementBytes(type);
    for (const int64_t size : sizes) {
        if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
            return std::nullopt;
    }
    return bytes;
}

/// A number of a header: never negative, never a fraction.
static int64_t wholeNumber(const json &value)
{
    if (!value.is_number_integer())
        throw std::invalid_argument(fmt::format("{} is no whole number", value.dump(-1, ' ', true)));
    if (value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max())
        throw std::invalid_argument(fmt::format("{} is too large", value.dump()));
    const auto number = value.get<int64_t>();
    if (number < 0)
        throw std::invalid_argument(fmt::format("{} is negative", number));
    return number;
}

static SafeTensor tensorFrom(const std::string &name, const json &object, int64_t dataOffsetBytes, int64_t dataBytes)
{
    SafeTensor tensor;
    tensor.name = name;
    const auto typeText = object.at("dtype").get<std::string>();
    const auto type = tensorTypeFrom(typeText);
    if (!type)
        throw std::invalid_argument(fmt::format("{} has the dtype {}, which this program can't read", name, typeText));
    tensor.type = *type;
    for (const json &size : object.at("shape"))
        tensor.sizes.push_back(wholeNumber(size));
    const json &offsets = object.at("data_offsets");
    if (!offsets.is_array() || offsets.size() != 2)
        throw std::invalid_argument(fmt::format("{} has no pair of data_offsets", name));
    const int64_t begin = wholeNumber(offsets[0]);
    const int64_t end = wholeNumber(offsets[1]);
    if (begin > end || end > dataBytes)
        throw std::invalid_argument(
            fmt::format("{} lies at bytes {} to {} of {} bytes of data", name, begin, end, dataBytes));
    const auto expected = bytesOf(tensor.sizes, tensor.type);
    if (!expected || *expected != end - begin)
        throw std::invalid_argument(fmt::format("{} has {} bytes, its shape and dtype {} ask for {}", name, end - begin,
                                                typeText,
                                                expected ? fmt::format("{}", *expected) : "more than there can be"));
    tensor.offsetBytes = dataOffsetBytes + begin;
    tensor.sizeBytes = end - begin;
    return tensor;
}

/// The format asks for tensors that follow each other without a gap: nothing is hidden between them.
static void checkWithoutGaps(const SafetensorsHeader &header)
{
    int64_t end = header.dataOffsetBytes;
    for (const SafeTensor &tensor : header.tensors) {
        if (tensor.offsetBytes != end)
            throw std::invalid_argument(
                fmt::format("{} {} at byte {} of the data", tensor.name,
                            tensor.offsetBytes < end ? "overlaps the tensor before it" : "leaves a gap before it",
                            tensor.offsetBytes - header.dataOffsetBytes));
        end += tensor.sizeBytes;
    }
    if (end != header.fileBytes)
        throw std::invalid_argument(fmt::format("its tensors end at byte {} of {}", end, header.fileBytes));
}

/// Parses the JSON; a name that is there twice is refused, where the parser alone would take the last.
static json parseWithoutDuplicates(std::string_view text)
{
    std::vector<std::set<std::string>> names;
    const auto watch = [&](int depth, json::parse_event_t event, json &parsed) {
        static constexpr int kMaxDepth = 8;
        if (depth > kMaxDepth)
            throw std::invalid_argument("it is nested too deeply");
        if (event == json::parse_event_t::object_start)
            names.emplace_back();
        else if (event == json::parse_event_t::object_end)
            names.pop_back();
        else if (event == json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second)
            throw std::invalid_argument(fmt::format("it names {} twice", parsed.get<std::string>()));
        return true;
    };
    return json::parse(text, watch);
}

static SafetensorsHeader headerFrom(std::string_view text, int64_t fileBytes)
{
    SafetensorsHeader header;
    header.fileBytes = fileBytes;
    header.dataOffsetBytes = kLengthBytes + static_cast<int64_t>(text.size());
    if (text.empty() || text.front() != '{')
        throw std::invalid_argument("its header does not begin with {");
    const json object = parseWithoutDuplicates(text);
    for (const auto &[name, value] : object.items()) {
        if (name == kMetadata)
            header.metadata = value.get<SafetensorsMetadata>();
        else
            header.tensors.push_back(
                tensorFrom(name, value, header.dataOffsetBytes, fileBytes - header.dataOffsetBytes));
    }
    std::ranges::sort(header.tensors, [](const SafeTensor &a, const SafeTensor &b) {
        return std::tuple(a.offsetBytes, a.sizeBytes, std::string_view(a.name)) <
               std::tuple(b.offsetBytes, b.sizeBytes, std::string_view(b.name));
    });
    checkWithoutGaps(header);
    return header;
}

Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view text, int64_t fileBytes, std::string_view where)
{
    try {
        return headerFrom(text, fileBytes);
    } catch (const std::exception &error) {
        return fail("{} is no whole safetensors file: {}. Get or write it again.", where, error.what());
    }
}

static uint64_t littleEndian(uint64_t value)
{
    return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

/// The JSON of a file's header; what it says is not checked yet.
static Result<std::string> readHeaderText(int descriptor, int64_t fileBytes, const std::filesystem::path &path)
{
    static constexpr std::string_view kRemedy = "Get or write it again.";
    if (fileBytes < kLengthBytes)
        return fail("{} is no safetensors file: it has {} bytes. {}", path.string(), fileBytes, kRemedy);
    uint64_t length = 0;
    if (const int error = readAll(descriptor, std::as_writable_bytes(std::span(&length, 1)), 0))
        return fail("Can't read {}: {}.", path.string(), std::strerror(error));
    length = littleEndian(length);
    if (length > static_cast<uint64_t>(std::min(kMaxHeaderBytes, fileBytes - kLengthBytes)))
        return fail("{} is no whole safetensors file: it announces a header of {} bytes and has {}. {}", path.string(),
                    length, fileBytes, kRemedy);
    std::string text(length, '\0');
    if (const int error = readAll(descriptor, std::as_writable_bytes(std::span(text)), kLengthBytes))
        return fail("Can't read {}: {}.", path.string(), std::strerror(error));
    return text;
}

Result<SafetensorsReader> SafetensorsReader::open(const std::filesystem::path &path)
{
    SafetensorsReader reader;
    reader.m_path = path;
    reader.m_file = FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status = {};
    if (reader.m_file.get() < 0 || ::fstat(reader.m_file.get(), &status) != 0)
        return fail("Can't read {}: {}.", path.string(), std::strerror(errno));
    if (!S_ISREG(status.st_mode))
        return fail("{} is no file.", path.string());
    const auto fileBytes = static_cast<int64_t>(status.st_size);
    auto header = readHeaderText(reader.m_file.get(), fileBytes, path).and_then([&](const std::string &text) {
        return parseSafetensorsHeader(text, fileBytes, path.string());
    });
    if (!header)
        return tl::unexpected(header.error());
    reader.m_header = std::move(*header);
    for (size_t i = 0; i < reader.m_header.tensors.size(); ++i)
        reader.m_byName.emplace(reader.m_header.tensors[i].name, i);
    return reader;
}

const SafeTensor *SafetensorsReader::find(std::string_view name) const
{
    const auto found = m_byName.find(name);
    return found == m_byName.end() ? nullptr : &m_header.tensors[found->second];
}

/// Where a range of a tensor lies in the file; a range outside of the tensor is a programmer's mistake, but is said.
static Result<int64_t> placeOf(const SafeTensor &tensor, int64_t offsetBytes, size_t sizeBytes)
{
    const auto size = static_cast<int64_t>(sizeBytes);
    if (offsetBytes < 0 || size > tensor.sizeBytes || offsetBytes > tensor.sizeBytes - size)
        return fail("{} has {} bytes; bytes {} to {} are not in it.", tensor.name, tensor.sizeBytes, offsetBytes,
                    offsetBytes + size);
    return tensor.offsetBytes + offsetBytes;
}

Result<> SafetensorsReader::read(const SafeTensor &tensor, int64_t offsetBytes, std::span<std::byte> bytes) const
{
    const auto place = placeOf(tensor, offsetBytes, bytes.size());
    if (!place)
        return tl::unexpected(place.error());
    if (const int error = readAll(m_file.get(), bytes, *place))
        return fail("Can't read {} of {}: {}.", tensor.name, m_path.string(), std::strerror(error));
    return {};
}

SafetensorsPlan planSafetensors(const std::vector<SafeTensorSpec> &tensors, const SafetensorsMetadata &metadata)
{
    SafetensorsPlan plan;
    plan.header.metadata = metadata;
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    if (!metadata.empty())
        object[std::string(kMetadata)] = metadata;
    int64_t offset = 0;
    for (const SafeTensorSpec &spec : tensors) {
        const int64_t size = bytesOf(spec.sizes, spec.type).value();
        object[spec.name] = {
            {"dtype", toText(spec.type)}, {"shape", spec.sizes}, {"data_offsets", {offset, offset + size}}};
        plan.header.tensors.push_back({spec.name, spec.type, spec.sizes, offset, size});
        offset += size;
    }
    std::string text = object.dump();
    const auto unpadded = static_cast<int64_t>(text.size()) + kLengthBytes;
    plan.header.dataOffsetBytes = (unpadded + kDataAlignmentBytes - 1) / kDataAlignmentBytes * kDataAlignmentBytes;
    text.append(static_cast<size_t>(plan.header.dataOffsetBytes - unpadded), ' ');
    const uint64_t length = littleEndian(text.size());
    plan.head.assign(reinterpret_cast<const char *>(&length), sizeof length);
    plan.head += text;
    for (SafeTensor &tensor : plan.header.tensors)
        tensor.offsetBytes += plan.header.dataOffsetBytes;
    plan.header.fileBytes = plan.header.dataOffsetBytes + offset;
    return plan;
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path &path, SafetensorsPlan plan)
{
    SafetensorsWriter writer;
    writer.m_path = path;
    writer.m_file = FileHandle(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (writer.m_file.get() < 0)
        return writeError(path, errno);
    if (const int error = writeAll(writer.m_file.get(), std::as_bytes(std::span(plan.head)), 0))
        return writeError(path, error);
    if (::ftruncate(writer.m_file.get(), plan.header.fileBytes) != 0)
        return writeError(path, errno);
    writer.m_writtenBytes.resize(plan.header.tensors.size());
    writer.m_plan = std::move(plan);
    return writer;
}

Result<SafetensorsWriter> SafetensorsWriter::join(const std::filesystem::path &path, SafetensorsPlan plan)
{
    SafetensorsWriter writer;
    writer.m_path = path;
    writer.m_file = FileHandle(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (writer.m_file.get() < 0)
        return writeError(path, errno);
    writer.m_writtenBytes.resize(plan.header.tensors.size());
    writer.m_plan = std::move(plan);
    return writer;
}

Result<> SafetensorsWriter::write(size_t tensor, int64_t offsetBytes, std::span<const std::byte> bytes)
{
    const auto place = placeOf(m_plan.header.tensors.at(tensor), offsetBytes, bytes.size());
    if (!place)
        return tl::unexpected(place.error());
    if (const int error = writeAll(m_file.get(), bytes, *place))
        return writeError(m_path, error);
    m_writtenBytes[tensor] += static_cast<int64_t>(bytes.size());
    return {};
}

Result<> SafetensorsWriter::finish()
{
    for (size_t i = 0; i < m_writtenBytes.size(); ++i) {
        const SafeTensor &tensor = m_plan.header.tensors[i];
        if (m_writtenBytes[i] != tensor.sizeBytes)
            return fail("Can't finish {}: {} of {} bytes of {} were written.", m_path.string(), m_writtenBytes[i],
                        tensor.sizeBytes, tensor.name);
    }
    return finishOwnPart();
}

Result<> SafetensorsWriter::finishOwnPart()
{
    if (::fsync(m_file.get()) != 0)
        return writeError(m_path, errno);
    return {};
}

} // namespace shardscope::files
