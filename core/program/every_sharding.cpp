// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/every_sharding.h"

#include <algorithm>

namespace meshwright {

void forEachSharding(Program& program, const std::function<void(TensorSharding&)>& visit)
{
    for (Function& function : program.functions) {
        for (Value& value : function.values) {
            if (value.sharding)
                visit(*value.sharding);
        }
        for (auto& sharding : function.resultShardings) {
            if (sharding)
                visit(*sharding);
        }
        for (Op& op : function.ops) {
            if (auto* constraint = std::get_if<ConstraintAttributes>(&op.attributes))
                visit(constraint->sharding);
            if (auto* computation = std::get_if<ComputationAttributes>(&op.attributes)) {
                std::for_each(computation->inShardings.begin(), computation->inShardings.end(), visit);
                std::for_each(computation->outShardings.begin(), computation->outShardings.end(), visit);
            }
        }
    }
}

} // namespace meshwright
