// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/npy.h"

#include "core/support/checked.h"
#include "core/support/file.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

namespace meshwright {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct ElementName {
    DType dtype;
    std::string_view name; ///< without the order of bytes
};
constexpr ElementName kNames[]
    = {{DType::Pred, "b1"}, {DType::S8, "i1"}, {DType::S16, "i2"}, {DType::S32, "i4"}, {DType::S64, "i8"}, {DType::U8, "u1"},
        {DType::U16, "u2"}, {DType::U32, "u4"}, {DType::U64, "u8"}, {DType::F16, "f2"}, {DType::F32, "f4"}, {DType::F64, "f8"},
        {DType::C64, "c8"}, {DType::C128, "c16"}, {DType::BF16, "V2"}, {DType::F8E4M3FN, "V1"}, {DType::F8E5M2, "f1"}};

/// What the header says.
struct Header {
    std::string descr;
    bool columnsFirst = false;
    Shape shape;
};

/// Reads the literal of a Python dictionary with the three entries of the format, in any order.
class HeaderReader {
public:
    explicit HeaderReader(std::string_view text)
        : m_text(text)
    {
    }

    /// Empty when it could be read, otherwise what is wrong.
    std::string read(Header& header)
    {
        if (!take('{'))
            return "a dictionary should begin it";
        bool seen[3] = {false, false, false};
        while (!take('}')) {
            std::string key;
            if (!string(key) || !take(':'))
                return "an entry has no name";
            bool good = false;
            if (key == "descr") {
                good = seen[0] = string(header.descr);
                if (!good && peek() == '[')
                    return "records of several fields are not read";
            } else if (key == "fortran_order") {
                good = seen[1] = truth(header.columnsFirst);
            } else if (key == "shape") {
                good = seen[2] = shape(header.shape);
            } else {
                return fmt::format("\"{}\" is not an entry of it", key);
            }
            if (!good)
                return fmt::format("the value of \"{}\" cannot be read", key);
            if (!take(',') && peek() != '}')
                return "a comma is missing";
        }
        skip();
        if (!m_text.empty())
            return "something follows the dictionary";
        return std::all_of(std::begin(seen), std::end(seen), [](bool s) { return s; })
            ? std::string()
            : "it needs descr, fortran_order and shape";
    }

private:
    void skip()
    {
        const std::size_t start = m_text.find_first_not_of(" \t\r\n");
        m_text.remove_prefix(std::min(start, m_text.size()));
    }

    char peek()
    {
        skip();
        return m_text.empty() ? '\0' : m_text.front();
    }

    bool take(char wanted)
    {
        if (peek() != wanted)
            return false;
        m_text.remove_prefix(1);
        return true;
    }

    bool word(std::string_view wanted)
    {
        skip();
        if (!m_text.starts_with(wanted))
            return false;
        m_text.remove_prefix(wanted.size());
        return true;
    }

    bool string(std::string& into)
    {
        const char quote = peek();
        if (quote != '\'' && quote != '"')
            return false;
        const std::size_t end = m_text.find(quote, 1);
        if (end == std::string_view::npos)
            return false;
        into = m_text.substr(1, end - 1);
        m_text.remove_prefix(end + 1);
        return true;
    }

    bool truth(bool& into)
    {
        into = word("True");
        return into || word("False");
    }

    bool shape(Shape& into)
    {
        if (!take('('))
            return false;
        while (!take(')')) {
            std::int64_t size = 0;
            bool any = false;
            skip();
            while (!m_text.empty() && m_text.front() >= '0' && m_text.front() <= '9') {
                const auto grown = checkedMultiply(size, 10);
                if (!grown || *grown > std::numeric_limits<std::int64_t>::max() - 9)
                    return false;
                size = *grown + (m_text.front() - '0');
                m_text.remove_prefix(1);
                any = true;
            }
            if (!any || into.size() >= 64)
                return false;
            static_cast<void>(take('L')); // Python 2's long integers
            into.push_back(size);
            if (!take(',') && peek() != ')')
                return false;
        }
        return true;
    }

    std::string_view m_text;
};

/// Splits the file into its header's text and its data.
Result<std::pair<std::string_view, std::string_view>> parts(std::string_view bytes, const Place& place)
{
    if (!bytes.starts_with(kMagic))
        return Problem{"MW1530", "this is not an NPY file: it does not begin with \\x93NUMPY",
            "save the array with numpy.save(file, array); an archive of numpy.savez holds several such files", place};
    if (bytes.size() < 8)
        return Problem{"MW1531", "the file ends in its header", {}, place};
    const int version = static_cast<unsigned char>(bytes[6]);
    if (version < 1 || version > 3)
        return Problem{"MW1531", fmt::format("the format's version is {}; 1, 2 and 3 are known", version), {}, place};
    const std::size_t width = version == 1 ? 2 : 4;
    if (bytes.size() < 8 + width)
        return Problem{"MW1531", "the file ends in its header", {}, place};
    const std::uint64_t size = littleEndian(bytes.substr(8, width));
    if (size > bytes.size() - 8 - width)
        return Problem{"MW1531", fmt::format("the file ends in its header of {} bytes", size), {}, place};
    const auto length = static_cast<std::size_t>(size);
    return std::pair(bytes.substr(8 + width, length), bytes.substr(8 + width + length));
}

void swapBytes(HostArray& array)
{
    const bool isPair = isComplex(array.type().dtype);
    const std::int64_t width = byteSize(array.type().dtype) / (isPair ? 2 : 1);
    for (std::int64_t at = 0; at < array.bytes(); at += width)
        std::reverse(array.data() + at, array.data() + at + width);
}

/// Rows first, from columns first.
HostArray transposed(const HostArray& columns, const Shape& shape)
{
    HostArray rows(TensorType{columns.type().dtype, shape});
    const std::int64_t width = byteSize(columns.type().dtype);
    Shape index(shape.size(), 0);
    for (std::int64_t to = 0; to < columns.type().elements(); ++to) {
        std::int64_t from = 0;
        for (std::size_t dim = shape.size(); dim-- > 0;)
            from = from * shape[dim] + index[dim];
        std::memcpy(rows.data() + to * width, columns.data() + from * width, static_cast<std::size_t>(width));
        for (std::size_t dim = shape.size(); dim-- > 0;) {
            if (++index[dim] < shape[dim])
                break;
            index[dim] = 0;
        }
    }
    return rows;
}

} // namespace

Result<NpyLayout> npyLayout(std::string_view begin, std::uint64_t fileBytes, const std::string& file)
{
    const Place place{file};
    const auto split = parts(begin, place);
    if (!split)
        return split.error();
    const auto& [text, data] = *split;
    Header header;
    if (const std::string wrong = HeaderReader(text).read(header); !wrong.empty())
        return Problem{"MW1531", "the header is damaged: " + wrong, {}, place};

    const bool hasOrder = !header.descr.empty() && std::string_view("<>=|").find(header.descr.front()) != std::string_view::npos;
    const std::string_view name = std::string_view(header.descr).substr(hasOrder ? 1 : 0);
    const auto* known = std::find_if(std::begin(kNames), std::end(kNames), [&](const ElementName& n) { return n.name == name; });
    if (known == std::end(kNames))
        return Problem{"MW1532", fmt::format("this program does not read elements of type '{}'", header.descr),
            "convert them before saving: array.astype('float32'), for example", place};

    std::optional<std::int64_t> size = byteSize(known->dtype);
    for (const std::int64_t extent : header.shape)
        size = size ? checkedMultiply(*size, extent) : std::nullopt;
    const std::size_t offset = begin.size() - data.size();
    const std::uint64_t there = fileBytes - std::min<std::uint64_t>(fileBytes, offset);
    if (!size || static_cast<std::uint64_t>(*size) != there)
        return Problem{"MW1533",
            fmt::format("{} needs {} bytes of data, the file has {}", typeText({known->dtype, header.shape}),
                size ? std::to_string(*size) : "too many", there),
            "save it again: the file was cut or changed", place};
    const bool isForeign = hasOrder && header.descr.front() == (std::endian::native == std::endian::little ? '>' : '<');
    return NpyLayout{{known->dtype, std::move(header.shape)}, header.columnsFirst, isForeign, offset};
}

Result<HostArray> parseNpy(std::string_view bytes, const std::string& file)
{
    const auto layout = npyLayout(bytes, bytes.size(), file);
    if (!layout)
        return layout.error();
    HostArray array = HostArray::fromBytes(layout->type, std::as_bytes(std::span(bytes.substr(layout->offset))));
    if (layout->isForeign)
        swapBytes(array);
    return layout->columnsFirst && layout->type.shape.size() > 1 ? transposed(array, layout->type.shape) : std::move(array);
}

Result<HostArray> readNpy(const std::filesystem::path& path)
{
    const auto bytes = readFile(path);
    if (!bytes)
        return bytes.error();
    return parseNpy(*bytes, path.string());
}

std::string npyBytes(const HostArray& array)
{
    const DType dtype = array.type().dtype;
    const auto* name = std::find_if(std::begin(kNames), std::end(kNames), [&](const ElementName& n) { return n.dtype == dtype; });
    assert(name != std::end(kNames));
    const char order = byteSize(dtype) == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
    const Shape& shape = array.type().shape;
    std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", order, name->name,
        fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
    // The data begins at a multiple of 64 bytes.
    const bool isLong = header.size() > 65000;
    const std::size_t before = kMagic.size() + (isLong ? 6 : 4);
    header.append(63 - (before + header.size()) % 64, ' ');
    header += '\n';
    std::string bytes(kMagic);
    bytes += isLong ? '\2' : '\1';
    bytes += '\0';
    for (std::size_t i = 0; i < (isLong ? 4U : 2U); ++i)
        bytes += static_cast<char>(header.size() >> (8 * i) & 0xffU);
    bytes += header;
    bytes.append(reinterpret_cast<const char*>(array.data()), static_cast<std::size_t>(array.bytes()));
    return bytes;
}

} // namespace meshwright
