// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/fft_kernel.h"

#include "core/kernels/host_array.h"
#include "core/program/other_op.h"

#include <unsupported/Eigen/FFT>

#include <bit>
#include <complex>
#include <cstring>
#include <numbers>

namespace meshwright {

namespace {

using Complex = std::complex<double>;

/// Transforms lines of one length. Lengths of small prime factors as they are; others as a convolution of a power of two, since Eigen's time
/// grows with the largest factor. Source: L. I. Bluestein, IEEE Trans. Audio Electroacoust. 18, 1970.
class LineTransform {
public:
    explicit LineTransform(std::size_t length)
        : m_length(length)
        , m_padded(paddedLength(length))
    {
        if (m_padded == m_length)
            return;
        m_chirp.resize(m_length);
        m_filter.assign(m_padded, Complex());
        for (std::size_t i = 0; i < m_length; ++i) {
            m_chirp[i] = turn(i * i % (2 * m_length), 2 * m_length);
            m_filter[i] = m_filter[(m_padded - i) % m_padded] = std::conj(m_chirp[i]);
        }
        forward(m_filter);
    }

    /// In place: sum of line[j] exp(-2 pi i j k / length); with `inverse` exp(+..), divided by the length.
    void run(std::vector<Complex>& line, bool inverse) const
    {
        if (inverse)
            conjugate(line);
        if (m_padded == m_length)
            forward(line);
        else
            byChirp(line);
        if (!inverse)
            return;
        conjugate(line);
        for (Complex& value : line)
            value /= static_cast<double>(m_length);
    }

private:
    /// exp(-2 pi i part / whole)
    static Complex turn(std::size_t part, std::size_t whole)
    {
        return std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(whole));
    }

    static std::size_t paddedLength(std::size_t length)
    {
        std::size_t rest = length;
        for (const unsigned factor : {2U, 3U, 5U, 7U}) {
            while (rest % factor == 0)
                rest /= factor;
        }
        return rest == 1 ? length : std::bit_ceil(2 * length - 1);
    }

    static void conjugate(std::vector<Complex>& line)
    {
        for (Complex& value : line)
            value = std::conj(value);
    }

    static void forward(std::vector<Complex>& line)
    {
        thread_local Eigen::FFT<double> transform; // keeps the roots of each length
        thread_local std::vector<Complex> made;
        if (line.size() == 1) // its own transform, which Eigen 3.4 cannot do
            return;
        transform.fwd(made, line);
        line.swap(made);
    }

    void byChirp(std::vector<Complex>& line) const
    {
        std::vector<Complex> padded(m_padded);
        for (std::size_t i = 0; i < m_length; ++i)
            padded[i] = line[i] * m_chirp[i];
        forward(padded);
        for (std::size_t i = 0; i < m_padded; ++i)
            padded[i] = std::conj(padded[i] * m_filter[i]);
        forward(padded);
        for (std::size_t i = 0; i < m_length; ++i)
            line[i] = std::conj(padded[i]) / static_cast<double>(m_padded) * m_chirp[i];
    }

    std::size_t m_length;
    std::size_t m_padded;
    std::vector<Complex> m_chirp;
    std::vector<Complex> m_filter;
};

enum class FftType : std::uint8_t { Forward, Inverse, OfReal, ToReal };

/// Computed in double precision, rounded once.
class FftKernel final : public Kernel {
public:
    FftKernel(const Function& function, const Op& op, FftType type, std::span<const std::int64_t> lengths)
        : m_operands(op.operands)
        , m_results(op.results)
        , m_operandType(function[op.operands.front()].type)
        , m_resultType(function[op.results.front()].type)
        , m_type(type)
        , m_lengths(lengths.begin(), lengths.end())
    {
        for (const std::int64_t length : m_lengths)
            m_lines.emplace_back(static_cast<std::size_t>(length));
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        const auto values = [&](std::size_t operand) {
            return HostArray::fromBytes(
                m_operandType, {addresses[m_operands[operand].at()], static_cast<std::size_t>(m_operandType.bytes())})
                .values();
        };
        const std::vector<double> reals = values(0);
        const std::vector<double> imaginaries = m_operands.size() > 1 ? values(1) : std::vector<double>(reals.size());
        Array array{m_operandType.shape, std::vector<Complex>(reals.size())};
        for (std::size_t i = 0; i < reals.size(); ++i)
            array.elements[i] = {reals[i], imaginaries[i]};

        const bool inverse = m_type == FftType::Inverse || m_type == FftType::ToReal;
        const std::size_t rank = array.shape.size();
        if (m_type == FftType::OfReal)
            transform(array, rank - 1, inverse, stop);
        for (std::size_t i = 0; i < m_lengths.size(); ++i) {
            const std::size_t dim = rank - m_lengths.size() + i;
            const bool isLast = dim + 1 == rank;
            if (!isLast || m_type == FftType::Forward || m_type == FftType::Inverse)
                transform(array, dim, inverse, stop);
        }
        if (m_type == FftType::ToReal)
            transform(array, rank - 1, inverse, stop);
        for (std::size_t part = 0; part < m_results.size() && !stop.isSet(); ++part)
            store(array, part, addresses[m_results[part].at()]);
    }

private:
    struct Array {
        Shape shape;
        std::vector<Complex> elements;
    };

    /// Lines along a dimension, which becomes as long as the result's. What a real transform leaves out of the last dimension are the conjugates
    /// of what it keeps.
    void transform(Array& array, std::size_t dim, bool inverse, const StopFlag& stop) const
    {
        const std::size_t transformed = dim - (array.shape.size() - m_lengths.size());
        const auto length = static_cast<std::size_t>(m_lengths[transformed]);
        const auto from = static_cast<std::size_t>(array.shape[dim]);
        const auto to = static_cast<std::size_t>(m_resultType.shape[dim]);
        std::size_t inner = 1;
        for (std::size_t d = dim + 1; d < array.shape.size(); ++d)
            inner *= static_cast<std::size_t>(array.shape[d]);
        const std::size_t outer = from * inner == 0 ? 0 : array.elements.size() / (from * inner);
        Array made{array.shape, std::vector<Complex>(outer * to * inner)};
        made.shape[dim] = static_cast<std::int64_t>(to);
        std::vector<Complex> line(length);
        for (std::size_t o = 0; o < outer && !stop.isSet(); ++o) {
            for (std::size_t i = 0; i < inner; ++i) {
                for (std::size_t k = 0; k < length; ++k)
                    line[k] = k < from ? array.elements[(o * from + k) * inner + i]
                                       : std::conj(array.elements[(o * from + (length - k)) * inner + i]);
                m_lines[transformed].run(line, inverse);
                for (std::size_t k = 0; k < to; ++k)
                    made.elements[(o * to + k) * inner + i] = line[k];
            }
        }
        array = std::move(made);
    }

    void store(const Array& array, std::size_t part, std::byte* to) const
    {
        std::vector<double> values;
        values.reserve(array.elements.size());
        for (const Complex& element : array.elements)
            values.push_back(part == 0 ? element.real() : element.imag());
        const HostArray made = HostArray::of(m_resultType, values);
        if (made.bytes() > 0)
            std::memcpy(to, made.data(), static_cast<std::size_t>(made.bytes()));
    }

    std::vector<ValueId> m_operands; ///< real parts, imaginary ones
    std::vector<ValueId> m_results;
    TensorType m_operandType; ///< of each part
    TensorType m_resultType;
    FftType m_type;
    std::vector<std::int64_t> m_lengths; ///< of the last dimensions
    std::vector<LineTransform> m_lines;
};

} // namespace

std::unique_ptr<const Kernel> makeFftKernel(const Function& function, OpId id)
{
    const Op& op = function[id];
    const auto& attributes = op.as<OtherAttributes>().attributes;
    const std::string_view kind = wordAt(attributes, "fft_type");
    const auto lengths = integersAt(attributes, "fft_length");
    const Shape& from = function[op.operands.front()].type.shape;
    const Shape& to = function[op.results.front()].type.shape;
    if (kind.empty() || lengths.empty() || lengths.size() > from.size() || from.size() != to.size())
        return nullptr;
    const FftType type = kind == "IRFFT" ? FftType::ToReal
        : kind == "RFFT"                 ? FftType::OfReal
        : kind == "IFFT"                 ? FftType::Inverse
                                         : FftType::Forward;
    // Along each dimension: as many elements as the text says, or half of them and one.
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::size_t dim = from.size() - lengths.size() + i;
        const bool isLast = i + 1 == lengths.size();
        const std::int64_t half = lengths[i] / 2 + 1;
        if (lengths[i] < 1 || from[dim] != (isLast && type == FftType::ToReal ? half : lengths[i])
            || to[dim] != (isLast && type == FftType::OfReal ? half : lengths[i]))
            return nullptr;
    }
    return std::make_unique<FftKernel>(function, op, type, lengths);
}

} // namespace meshwright
