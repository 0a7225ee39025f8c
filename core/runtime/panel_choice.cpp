// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/panel_product.h"

#include <vector>

namespace meshwright {

const PanelProduct& avx2PanelProduct();
const PanelProduct& avx512PanelProduct();

std::span<const PanelProduct* const> panelProducts()
{
    static const std::vector<const PanelProduct*> there = [] {
        std::vector<const PanelProduct*> products;
#ifdef MESHWRIGHT_HAS_PANELS
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512vl"))
            products.push_back(&avx512PanelProduct());
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
            products.push_back(&avx2PanelProduct());
#endif
        return products;
    }();
    return there;
}

const PanelProduct* panelProduct()
{
    static const PanelProduct* fastest = panelProducts().empty() ? nullptr : panelProducts().front();
    return fastest;
}

} // namespace meshwright
