// SPDX-License-Identifier: GPL-3.0-or-later
// How long a search takes: GPT-3 of 96 layers on 1,024 H100, until the first plan, and until every layout is looked at or pruned.
#include "core/support/resources.h"
#include "sim/search/search_request.h"
#include "sim/search/transformer_search.h"
#include "tests/bench/gpt3.h"

#include <cstdio>

int main()
{
    using namespace meshwright;
    using namespace meshwright::sim;
    const auto catalogue = Catalogue::load(resourcesDirectory() / "hardware/catalogue.json");
    const auto calibration = Calibration::load(resourcesDirectory() / "hardware/calibration.json");
    if (!catalogue || !calibration)
        return 3;
    SearchWork work;
    work.model = gpt3();
    work.sequence = 2048;
    work.globalBatch = 1536;
    SearchWords words;
    words.hardware = {"h100x1024"};
    std::vector<std::string> notes;
    const auto machines = machinesOf(words, *catalogue, *calibration, notes);
    if (!machines)
        return 3;
    for (const unsigned threads : {1U, 2U}) {
        SearchOptions options;
        options.threads = threads;
        const SearchResult result = searchTransformer(work, *machines, {}, options);
        std::printf("GPT-3 175B on 1,024 H100, %u threads: first plan after %.2f s, all done after %.2f s (explanations too); "
                    "%lld layouts, %lld pruned; "
                    "best %.3f s a step, gap %.2f %%\n",
            threads, result.firstPlanSeconds, result.wallSeconds, static_cast<long long>(result.candidates),
            static_cast<long long>(result.pruned), result.plans.front().modelSeconds, 100.0 * result.gap);
    }
}
