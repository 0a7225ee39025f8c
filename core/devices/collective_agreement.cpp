// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/devices/collective_agreement.h"

#include <algorithm>
#include <concepts>

namespace meshwright {

namespace {

/// FNV-1a: the same on all computers. Source: Fowler, Noll, Vo, http://www.isthe.com/chongo/tech/comp/fnv/
class Hash {
public:
    explicit Hash(std::string_view text = {})
    {
        for (const char letter : text)
            add(static_cast<unsigned char>(letter));
    }

    template <std::integral T>
    Hash& operator<<(T number)
    {
        const auto bits = static_cast<std::uint64_t>(number);
        for (int shift = 0; shift < 64; shift += 8)
            add(static_cast<unsigned char>(bits >> shift));
        return *this;
    }
    Hash& operator<<(DType dtype) { return *this << static_cast<int>(dtype); }
    Hash& operator<<(const TensorType& type) { return *this << type.dtype << type.shape; }
    Hash& operator<<(const AxisRef& axis) { return *this << axis.axis << axis.pre << axis.size; }
    Hash& operator<<(const AxisMove& move) { return *this << move.from << move.to << move.axes; }

    template <typename T>
    Hash& operator<<(const std::vector<T>& list)
    {
        *this << list.size();
        for (const T& one : list)
            *this << one;
        return *this;
    }

    std::uint64_t value() const { return m_value; }

private:
    void add(unsigned char byte) { m_value = (m_value ^ byte) * 0x100000001b3U; }

    std::uint64_t m_value = 0xcbf29ce484222325U;
};

Hash hashOf(const CollectiveAttributes& attributes)
{
    Hash hash;
    hash << attributes.axes << attributes.perDim << attributes.moves << static_cast<int>(attributes.kind)
         << attributes.resultShape << attributes.sources << attributes.pieces.has_value();
    if (attributes.pieces)
        hash << attributes.pieces->split << attributes.pieces->join << attributes.pieces->groups;
    return hash;
}

} // namespace

CollectiveAgreement agreementOf(OpKind kind, const TensorType& operand, const TensorType& result,
    const CollectiveAttributes& attributes, std::string_view text, std::string_view description)
{
    CollectiveAgreement agreement;
    agreement.hashes = {(Hash() << static_cast<int>(kind)).value(), (Hash() << operand.dtype << result.dtype).value(),
        (Hash() << operand << result).value(), hashOf(attributes).value(), Hash(text).value()};
    const std::size_t most = agreement.description.size() - 1;
    std::copy_n(description.begin(), std::min(most, description.size()), agreement.description.begin());
    return agreement;
}

std::string differenceOf(const CollectiveAgreement& a, const CollectiveAgreement& b)
{
    constexpr std::array<const char*, CollectiveAgreement::PartCount> kNames
        = {"op", "element type", "shape", "attributes", "order"};
    for (std::size_t part = 0; part < kNames.size(); ++part) {
        if (a.hashes[part] != b.hashes[part])
            return kNames[part];
    }
    return "";
}

std::string descriptionOf(const CollectiveAgreement& agreement)
{
    const auto end = std::find(agreement.description.begin(), agreement.description.end(), '\0');
    return {agreement.description.begin(), end};
}

} // namespace meshwright
