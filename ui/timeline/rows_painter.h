// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/theme.h"
#include "ui/timeline/row_columns.h"
#include "ui/timeline/row_layout.h"
#include "ui/timeline/time_axis.h"
#include "ui/timeline/timeline_model.h"

#include <QFont>
#include <QImage>
#include <QSize>
#include <QStaticText>

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

class QPainter;

namespace meshwright::ui {

/// Width of the column with the names of rows, in pixels.
inline constexpr int kGutterWidth = 168;

/// Everything that the picture of the rows follows from. Equal scenes give equal pictures.
struct RowsScene {
    std::shared_ptr<const TimelineModel> model; ///< never null
    TimeAxis axis;
    RowLayout layout;
    TimeWindow window; ///< units of the axis; length > 0
    double scrolled = 0.0; ///< pixels of the layout above the picture
    QSize size; ///< pixels, the gutter included
    double ratio = 1.0; ///< device pixels of a pixel
    Theme theme = Theme::Light;
    QFont font;
    std::set<std::int64_t> markedDevices; ///< their names stand out
    std::set<std::uint32_t> collapsed; ///< groups

    int columns() const; ///< device pixels right of the gutter
    TimeWindow seconds(std::uint32_t group) const { return axis.toSeconds(group, window); }
    double unitsPerPixel() const { return window.length() / std::max(1, size.width() - kGutterWidth); }

    /// Between a place right of the picture's left edge, in pixels, and the axis.
    double at(double x) const { return window.begin + (x - kGutterWidth) * unitsPerPixel(); }
    double x(double at) const { return kGutterWidth + (at - window.begin) / unitsPerPixel(); }
};

/// The slices of one row that are drawn on their own, columns counting from the gutter.
struct DrawnRow {
    std::size_t line = 0; ///< of the layout
    std::vector<DrawnSlice> slices;
};

struct RowsPicture {
    QImage image; ///< scene.size * ratio device pixels; its own ratio stays 1, so that it is copied to the screen without scaling
    std::vector<DrawnRow> rows;
    bool hasAllLabels = true; ///< false: painting again adds labels that were too many to measure at once

    /// The drawn row of a line; null when it is out of sight.
    const DrawnRow* rowOf(std::size_t line) const;
};

/// Draws the rows of a timeline, without rulers: slices as lines of pixels, names where they fit. The picture follows from the scene alone; what a painter keeps
/// (measured names) makes the next one quicker.
class RowsPainter {
public:
    /// Names that are measured and laid out for one picture. A new name takes about 30 us, a known one 2 us.
    static constexpr int kNewLabelsAtOnce = 80;

    /// Names drawn on one picture, the widest slices first: fewer on sharp screens, where each has four times the pixels.
    static int mostLabels(double ratio) { return ratio > 1.5 ? 500 : 800; }

    void paint(const RowsScene& scene, RowsPicture& picture, int newLabels = kNewLabelsAtOnce);

private:
    struct Label {
        QStaticText text;
        float width = 0.0F;
    };
    using Labels = std::vector<Label>; ///< of one name, the longest first
    struct Candidate {
        std::uint32_t group = 0;
        std::uint32_t slice = 0;
        float left = 0.0F; ///< pixels
        float width = 0.0F;
        float top = 0.0F;
        float height = 0.0F;
        const Label* label = nullptr;
    };

    const Labels* labelsOf(std::uint32_t group, std::uint32_t name, const TimelinePart& part, int& budget);
    void paintPixels(const RowsScene& scene, RowsPicture& picture);
    void collectCandidates(const RowsScene& scene, const LayoutLine& line, const std::vector<DrawnSlice>& slices);
    void startLabels(const RowsScene& scene, const QFont& font);
    void keepFittingLabels(const RowsScene& scene, RowsPicture& picture, int newLabels);
    void paintLabels(QPainter& painter, const RowsScene& scene, RowsPicture& picture, int newLabels);

    /// The column with the names of rows follows from less than the whole picture, and is kept while only the window changes.
    struct Gutter {
        QImage image;
        std::shared_ptr<const TimelineModel> model;
        RowLayout layout;
        double scrolled = 0.0;
        double ratio = 0.0;
        Theme theme = Theme::Light;
        QFont font;
        std::set<std::int64_t> markedDevices;
    };
    void paintGutter(const RowsScene& scene);

    Gutter m_gutter;
    RowColumns m_columns;
    std::vector<Candidate> m_candidates;
    std::vector<std::unordered_map<std::uint32_t, Labels>> m_labels; ///< by group and name
    std::shared_ptr<const TimelineModel> m_labelled; ///< that m_labels are of
    QFont m_font; ///< the same
    double m_ratio = 0.0; ///< the same
};

/// Marks of the ruler of a group, or of the axis.
Ticks ticksOf(const RowsScene& scene, std::optional<std::uint32_t> group);

/// A slice's name and what is shown of it where there is less room: without its kind, or its kind alone. The longest first.
/// "all_reduce grad.layers.0.w", "grad.layers.0.w", "all_reduce".
std::vector<std::string> labelTexts(const std::string& name);

} // namespace meshwright::ui
