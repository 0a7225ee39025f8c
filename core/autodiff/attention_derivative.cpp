// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/attention_derivative.h"

#include "core/program/attention.h"

namespace meshwright {

std::vector<ValueId> attentionCotangents(const DerivativeContext& context, ValueId cotangent)
{
    std::vector<ValueId> operands;
    for (const auto* values : {&context.op.operands, &context.op.results}) {
        for (const ValueId value : *values)
            operands.push_back(context.primal(value));
    }
    operands.push_back(cotangent);
    std::vector<TensorType> types;
    for (const ValueId operand : operands)
        types.push_back(context.backward.type(operand));
    const AttentionForm form = *attentionForm(context.op.as<OtherAttributes>());
    std::vector<ValueId> cotangents = context.backward.addMany(
        OpKind::AttentionGrad, std::move(operands), attentionAttributes(OpKind::AttentionGrad, form, types));
    cotangents.resize(context.op.operands.size());
    return cotangents;
}

} // namespace meshwright
