// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/bfloat16_product.h"
#include "core/kernels/panel_product.h"

#include <vector>

#ifdef MESHWRIGHT_HAS_PANELS
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace meshwright {

const PanelProduct& avx2PanelProduct();
const PanelProduct& avx512PanelProduct();
const Bfloat16Product& amxBfloat16Product();

#ifdef MESHWRIGHT_HAS_PANELS
namespace {

bool hasAvx512()
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl");
}

bool hasBit(unsigned bits, int bit)
{
    return ((bits >> bit) & 1U) != 0;
}

/// What the processor says of itself. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID.
struct CpuId {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;

    CpuId(unsigned leaf, unsigned part) { __get_cpuid_count(leaf, part, &eax, &ebx, &ecx, &edx); }
};

/// True when tiles may be used: the processor has them, the system keeps them for threads (XCR0), and has been asked for them, which Linux wants
/// since they make what is kept of a thread 8 KiB larger. Source: Documentation/arch/x86/xstate.rst of Linux.
bool mayUseAmx()
{
    constexpr unsigned kTileState = 0x60000; // configuration and data, bits 17 and 18
    const CpuId features(7, 0);
    if (!hasAvx512() || !hasBit(CpuId(7, 1).eax, 5) || !hasBit(features.edx, 22)
        || !hasBit(features.edx, 24) // avx512_bf16, amx-bf16, -tile
        || !hasBit(CpuId(1, 0).ecx, 27)) // xgetbv is there
        return false;
    unsigned low = 0;
    unsigned high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & kTileState) != kTileState)
        return false;
#if defined(__linux__)
    constexpr long kRequestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

} // namespace
#endif

std::span<const PanelProduct* const> panelProducts()
{
    static const std::vector<const PanelProduct*> there = [] {
        std::vector<const PanelProduct*> products;
#ifdef MESHWRIGHT_HAS_PANELS
        if (hasAvx512())
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

const Bfloat16Product* bfloat16Product()
{
#ifdef MESHWRIGHT_HAS_PANELS
    static const Bfloat16Product* const product = mayUseAmx() ? &amxBfloat16Product() : nullptr;
    return product;
#else
    return nullptr;
#endif
}

} // namespace meshwright
