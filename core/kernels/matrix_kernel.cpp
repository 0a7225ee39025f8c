// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/matrix_kernel.h"

#include "core/kernels/host_array.h"
#include "core/program/other_op.h"

#include <Eigen/Cholesky>

#include <cstring>
#include <limits>

namespace meshwright {

namespace {

/// In memory of its own, which is aligned: where a device keeps a matrix does not change what is computed of it.
using DoubleMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using DoubleElements = Eigen::Map<const DoubleMatrix>;

/// Every matrix of the last two dimensions, in double precision: Cholesky's factor, and solutions of triangular systems.
class MatrixKernel : public Kernel {
public:
    MatrixKernel(const Function& function, const Op& op)
        : m_operands(op.operands)
        , m_result(op.results.front())
        , m_resultType(function[m_result].type)
    {
        for (const ValueId operand : m_operands)
            m_types.push_back(function[operand].type);
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        std::vector<std::vector<double>> operands;
        for (std::size_t i = 0; i < m_operands.size(); ++i) {
            const auto bytes = static_cast<std::size_t>(m_types[i].bytes());
            operands.push_back(HostArray::fromBytes(m_types[i], {addresses[m_operands[i].at()], bytes}).values());
        }
        std::vector<double> results(operands.back().size());
        const std::int64_t size = m_types.front().shape.back(); // of a square matrix
        const std::int64_t columns = m_resultType.shape.back();
        const std::int64_t rows = m_resultType.shape[m_resultType.shape.size() - 2];
        DoubleMatrix result;
        for (std::int64_t at = 0, square = 0; at < m_resultType.elements() && !stop.isSet(); at += rows * columns) {
            const DoubleElements a(operands.front().data() + square, size, size);
            const DoubleElements b(operands.back().data() + at, rows, columns);
            compute(a, b, result);
            Eigen::Map<DoubleMatrix>(results.data() + at, rows, columns) = result;
            square += size * size;
        }
        const HostArray made = HostArray::of(m_resultType, results);
        if (made.bytes() > 0)
            std::memcpy(addresses[m_result.at()], made.data(), static_cast<std::size_t>(made.bytes()));
    }

protected:
    /// `b` is the last operand, of the result's shape.
    virtual void compute(const DoubleElements& a, const DoubleElements& b, DoubleMatrix& result) const = 0;

private:
    std::vector<ValueId> m_operands;
    ValueId m_result;
    std::vector<TensorType> m_types; ///< of the operands
    TensorType m_resultType;
};

/// a = l times its transpose; of a only the named triangle counts, the other one of the result is zero. NaN where a is not positive definite.
class CholeskyKernel final : public MatrixKernel {
public:
    CholeskyKernel(const Function& function, const Op& op)
        : MatrixKernel(function, op)
        , m_lower(integerAt(op.as<OtherAttributes>().attributes, "lower").value_or(0) != 0)
    {
    }

protected:
    void compute(const DoubleElements& a, const DoubleElements&, DoubleMatrix& l) const override
    {
        l = a;
        if (!m_lower)
            l.transposeInPlace();
        const Eigen::LLT<Eigen::Ref<DoubleMatrix>> inPlace(l);
        if (inPlace.info() != Eigen::Success)
            l.setConstant(std::numeric_limits<double>::quiet_NaN());
        l.triangularView<Eigen::StrictlyUpper>().setZero();
        if (!m_lower)
            l.transposeInPlace();
    }

private:
    bool m_lower;
};

/// op(a) x = b, or x op(a) = b.
class TriangularKernel final : public MatrixKernel {
public:
    TriangularKernel(const Function& function, const Op& op)
        : MatrixKernel(function, op)
    {
        const auto& attributes = op.as<OtherAttributes>().attributes;
        const auto isSet
            = [&](const char* name, bool otherwise) { return integerAt(attributes, name).value_or(otherwise ? 1 : 0) != 0; };
        m_left = isSet("left_side", true);
        m_unit = isSet("unit_diagonal", false);
        const std::string_view transpose = wordAt(attributes, "transpose_a");
        m_transposed = transpose == "TRANSPOSE" || transpose == "ADJOINT";
        m_lower = isSet("lower", false) != (m_transposed == m_left); // of what stands on the left of x, in the end
    }

protected:
    void compute(const DoubleElements& a, const DoubleElements& b, DoubleMatrix& x) const override
    {
        DoubleMatrix left = a;
        x = b;
        if (m_transposed == m_left)
            left.transposeInPlace();
        if (!m_left) // x op(a) = b is op(a) transposed times x transposed
            x.transposeInPlace();
        if (m_unit)
            m_lower ? solve<Eigen::UnitLower>(left, x) : solve<Eigen::UnitUpper>(left, x);
        else
            m_lower ? solve<Eigen::Lower>(left, x) : solve<Eigen::Upper>(left, x);
        if (!m_left)
            x.transposeInPlace();
    }

private:
    template <unsigned Triangle>
    static void solve(const DoubleMatrix& left, DoubleMatrix& x)
    {
        left.triangularView<Triangle>().solveInPlace(x);
    }

    bool m_left = true;
    bool m_unit = false;
    bool m_transposed = false;
    bool m_lower = false;
};

} // namespace

std::unique_ptr<const Kernel> makeMatrixKernel(const Function& function, OpId id)
{
    const Op& op = function[id];
    if (op.kind == OpKind::Cholesky)
        return std::make_unique<CholeskyKernel>(function, op);
    return std::make_unique<TriangularKernel>(function, op);
}

} // namespace meshwright
