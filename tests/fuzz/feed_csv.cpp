// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/dataset.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// Rows to learn from, plain or gzip.
void feedCsv(std::string_view text)
{
    const auto dataset = parseCsvDataset(text, "fuzz.csv", {});
    if (!dataset)
        return;
    require(dataset->rows() > 0 && dataset->features > 0, "a data set has rows");
    require(static_cast<std::int64_t>(dataset->inputs.size()) == dataset->rows() * dataset->features, "every row is complete");
}

} // namespace meshwright::fuzz
