// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diagnose/explain_message.h"
#include "core/draw/display_list.h"
#include "sim/calibrate/nccl_log.h"

#include <QSize>
#include <QString>

namespace meshwright::ui {

/// One explained message for a text browser: the message, what it means and says, the pictures, the ways out with their code. A picture of a layout is
/// the image `layout:N`, N being its place among the pictures, which has a size; the others are drawn with characters. `across`: pictures beside each other.
QString explanationHtml(const Explanation& explanation, const std::vector<QSize>& pictureSizes, std::size_t across);

/// A log of nccl-tests, as `calibrate` reads it: what was measured, or what is wrong with the log, and how a study has it.
QString ncclHtml(const Result<sim::NcclLog>& log, const QString& path);

/// A layout as the other views draw it; larger than `size` where its labels need more.
DisplayList layoutPicture(const PicturedLayout& layout, QSize size);

/// "lines 12, 40 and 3 more".
QString linesText(const Explanation& explanation);

} // namespace meshwright::ui
