// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/mesh/device_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace meshwright {

namespace {

constexpr std::size_t kLineWidth = 75;
constexpr std::size_t kMostWhole = 1000; ///< devices that are all printed
constexpr std::int64_t kEdge = 3; ///< entries at each end of an axis of a larger array

/// numpy's `_formatArray`, for integers.
class ArrayPrinter {
public:
    explicit ArrayPrinter(const DeviceArray& array)
        : m_array(array)
        , m_isShort(array.devices.size() > kMostWhole)
    {
        visit(0, 0, [&](std::size_t at) { m_width = std::max(m_width, fmt::formatted_size("{}", m_array.devices[at])); });
    }

    std::string text() const { return axis(0, 0, " ", kLineWidth); }

private:
    bool isCut(std::size_t dim) const { return m_isShort && m_array.shape[dim] > 2 * kEdge; }

    /// Devices between neighbours along an axis.
    std::size_t stride(std::size_t dim) const
    {
        std::size_t count = 1;
        for (std::size_t inner = dim + 1; inner < m_array.shape.size(); ++inner)
            count *= static_cast<std::size_t>(m_array.shape[inner]);
        return count;
    }

    /// The entries of an axis that are printed; nothing stands for those left out.
    std::vector<std::optional<std::int64_t>> entries(std::size_t dim) const
    {
        std::vector<std::optional<std::int64_t>> shown;
        for (std::int64_t i = 0; i < m_array.shape[dim]; ++i) {
            if (!isCut(dim) || i < kEdge || i >= m_array.shape[dim] - kEdge)
                shown.emplace_back(i);
            else if (i == kEdge)
                shown.emplace_back(std::nullopt);
        }
        return shown;
    }

    template <typename Visit>
    void visit(std::size_t dim, std::size_t offset, const Visit& each) const
    {
        if (dim == m_array.shape.size())
            return each(offset);
        for (const auto& entry : entries(dim)) {
            if (entry)
                visit(dim + 1, offset + static_cast<std::size_t>(*entry) * stride(dim), each);
        }
    }

    std::string axis(std::size_t dim, std::size_t offset, const std::string& indent, std::size_t width) const
    {
        if (dim == m_array.shape.size())
            return fmt::format("{:>{}}", m_array.devices[offset], m_width);
        const std::string body
            = dim + 1 == m_array.shape.size() ? row(dim, offset, indent, width) : rows(dim, offset, indent, width);
        return "[" + body.substr(indent.size()) + "]";
    }

    /// The last axis: as many to a line as fit.
    std::string row(std::size_t dim, std::size_t offset, const std::string& indent, std::size_t width) const
    {
        std::string done;
        std::string line = indent;
        for (const auto& entry : entries(dim)) {
            const std::string word = entry ? axis(dim + 1, offset + static_cast<std::size_t>(*entry), indent, width) : "...";
            if (line.size() > indent.size())
                line += " ";
            if (line.size() + word.size() > width - 1 && line.size() > indent.size()) {
                done += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
                line = indent;
            }
            line += word;
        }
        return done + line;
    }

    std::string rows(std::size_t dim, std::size_t offset, const std::string& indent, std::size_t width) const
    {
        const std::string between(m_array.shape.size() - dim - 1, '\n');
        std::string text;
        for (const auto& entry : entries(dim)) {
            text += text.empty() ? "" : between;
            text += indent;
            text += entry ? axis(dim + 1, offset + static_cast<std::size_t>(*entry) * stride(dim), indent + " ", width - 1)
                          : "...";
        }
        return text;
    }

    const DeviceArray& m_array;
    bool m_isShort;
    std::size_t m_width = 1; ///< of an entry
};

} // namespace

std::string arrayText(const DeviceArray& array)
{
    return ArrayPrinter(array).text();
}

} // namespace meshwright
