// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"
#include "ui/search/search_job.h"

namespace meshwright::ui {

/// The plans by step time and memory, under the limit of a device; a disc each, with the id "plan:INDEX". `chosen` is marked; -1: none.
DisplayList plansPicture(const FoundPlans& found, int chosen, double width, double height);

} // namespace meshwright::ui
