// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/rows_painter.h"

#include "core/draw/draw_timeline.h"
#include "core/support/text.h"
#include "ui/theme/theme.h"
#include "ui/timeline/timeline_colours.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <tuple>

namespace meshwright::ui {

namespace {

constexpr double kLeastLabel = 18.0; ///< pixels
constexpr double kLabelPadding = 5.0;
constexpr double kTwoLines = 30.0; ///< height of a row from which on its slices have a second line of text
constexpr int kMostSecondLines = 80;

/// Device pixels from the top of the picture, within it.
int deviceY(const RowsScene& scene, double y, int height)
{
    return std::clamp(static_cast<int>(std::lround((y - scene.scrolled) * scene.ratio)), 0, height);
}

/// Writes lines of pixels from the top to the bottom of the picture.
class PixelWriter {
public:
    PixelWriter(const RowsScene& scene, const QImage& gutter, QImage& image)
        : m_scene(scene)
        , m_image(image)
        , m_gutterImage(gutter)
        , m_palette(timelineColours(scene.theme))
        , m_columns(scene.columns())
        , m_gutter(gutter.width())
    {
        for (std::uint32_t group = 0; group < scene.model->groups().size(); ++group)
            m_empty.push_back(emptyLine(group));
        m_empty.push_back(std::vector<QRgb>(static_cast<std::size_t>(m_columns), m_palette.background));
    }

    int columns() const { return m_columns; }

    void heading(const LayoutLine& line)
    {
        fillTo(line.top, line.group);
        const int bottom = deviceY(m_scene, line.bottom(), m_image.height());
        for (; m_y < bottom; ++m_y)
            std::fill_n(scanLine(m_y), m_image.width(), m_palette.surface);
    }

    void row(const LayoutLine& line, const RowColumns& columns)
    {
        fillTo(line.top, line.group);
        makeLines(line.group, columns);
        const int top = static_cast<int>(std::lround((line.top - m_scene.scrolled) * m_scene.ratio));
        const int bottom = deviceY(m_scene, line.bottom(), m_image.height());
        const int thickness = std::max(1, static_cast<int>(std::lround(m_scene.ratio)));
        const int first = m_y;
        for (; m_y < bottom; ++m_y) {
            const bool isStripe = m_hasFolded && (m_y - top) / thickness % 3 == 2;
            write(m_y, isStripe ? m_striped : m_plain);
        }
        for (const DrawnSlice& slice : columns.slices)
            hatch(line, columns, slice, first, bottom);
    }

    /// The rest of the picture.
    void finish()
    {
        for (; m_y < m_image.height(); ++m_y)
            write(m_y, m_empty.back());
    }

private:
    QRgb* scanLine(int y) { return reinterpret_cast<QRgb*>(m_image.scanLine(y)); }

    void write(int y, const std::vector<QRgb>& line)
    {
        QRgb* to = scanLine(y);
        std::memcpy(to, m_gutterImage.constScanLine(y), static_cast<std::size_t>(m_gutter) * sizeof(QRgb));
        std::memcpy(to + m_gutter, line.data(), line.size() * sizeof(QRgb));
    }

    std::vector<QRgb> emptyLine(std::uint32_t group) const
    {
        std::vector<QRgb> line(static_cast<std::size_t>(m_columns), m_palette.background);
        const TimeWindow seconds = m_scene.seconds(group);
        const double perSecond = m_columns / seconds.length();
        const auto which = m_scene.axis.isStretched() ? std::optional(group) : std::nullopt;
        for (const Tick& tick : ticksOf(m_scene, which).marks) {
            const auto column = static_cast<int>((tick.at - seconds.begin) * perSecond);
            if (column >= 0 && column < m_columns)
                line[static_cast<std::size_t>(column)] = m_palette.grid;
        }
        return line;
    }

    void fillTo(double top, std::uint32_t group)
    {
        for (const int end = deviceY(m_scene, top, m_image.height()); m_y < end; ++m_y)
            write(m_y, m_empty[group]);
    }

    void makeLines(std::uint32_t group, const RowColumns& columns)
    {
        const std::vector<QRgb>& empty = m_empty[group];
        m_plain = empty;
        m_hasFolded = false;
        for (std::size_t x = 0; x < columns.columns.size(); ++x) {
            const Column& column = columns.columns[x];
            if (column.kind != ColumnKind::Empty)
                m_plain[x] = m_palette.shadeOf(column);
            m_hasFolded = m_hasFolded || column.kind == ColumnKind::Folded;
        }
        // A thin edge keeps neighbours of one category apart.
        const auto edge = static_cast<std::int32_t>(std::max(1.0, std::floor(m_scene.ratio)));
        for (const DrawnSlice& slice : columns.slices) {
            if (slice.right - slice.left >= 4 * edge && slice.right < m_columns)
                std::copy_n(empty.begin() + slice.right - edge, edge, m_plain.begin() + slice.right - edge);
        }
        if (!m_hasFolded)
            return;
        m_striped = m_plain;
        for (std::size_t x = 0; x < columns.columns.size(); ++x) {
            const Column& column = columns.columns[x];
            if (column.kind == ColumnKind::Folded)
                m_striped[x] = m_palette.stripeOf(column);
        }
    }

    void hatch(const LayoutLine& line, const RowColumns& columns, const DrawnSlice& slice, int first, int last)
    {
        const SliceCategory category = columns.columns[static_cast<std::size_t>(slice.left)].category;
        const Hatch how = sliceLook(category).hatch;
        const auto edge = static_cast<std::int32_t>(std::max(1.0, std::floor(m_scene.ratio)));
        if (how == Hatch::None || slice.right - slice.left < 3 * edge)
            return;
        const int top = static_cast<int>(std::lround((line.top - m_scene.scrolled) * m_scene.ratio));
        for (int y = first; y < last; ++y) {
            if (how != Hatch::Falling)
                hatchLine(slice, category, y, y - top, edge);
            if (how != Hatch::Rising)
                hatchLine(slice, category, y, top - y, edge);
        }
    }

    /// Marks the pixels of one line at which x + shift is a multiple of the hatch's period.
    void hatchLine(const DrawnSlice& slice, SliceCategory category, int y, int shift, std::int32_t edge)
    {
        const std::int32_t period = 6 * edge;
        const std::int32_t right = slice.right - (slice.right - slice.left >= 4 * edge && slice.right < m_columns ? edge : 0);
        const std::int32_t phase = ((slice.left + shift) % period + period) % period;
        QRgb* pixels = scanLine(y) + m_gutter;
        for (std::int32_t x = slice.left + (phase == 0 ? 0 : period - phase); x < right; x += period)
            std::fill_n(pixels + x, std::min(edge, right - x), m_palette.hatch[static_cast<std::size_t>(category)]);
    }

    const RowsScene& m_scene;
    QImage& m_image;
    const QImage& m_gutterImage;
    TimelineColours m_palette;
    int m_columns;
    int m_gutter; ///< device pixels
    int m_y = 0; ///< the next line to be written
    std::vector<std::vector<QRgb>> m_empty; ///< by group: a line without slices; the last: below all groups
    std::vector<QRgb> m_plain;
    std::vector<QRgb> m_striped; ///< with the stripes of folded slices
    bool m_hasFolded = false;
};

QFont labelFont(const RowsScene& scene)
{
    double height = RowLayout::kMostRow;
    for (const LayoutLine& line : scene.layout.lines()) {
        if (!line.isHeading())
            height = std::min(height, line.height);
    }
    QFont font = scene.font;
    font.setPixelSize(height >= 16.0 ? 12 : 10);
    return font;
}

/// Names of rows, and the headings of groups with their rulers.
class TextPainter {
public:
    TextPainter(QPainter& painter, const RowsScene& scene)
        : m_painter(painter)
        , m_scene(scene)
        , m_font(labelFont(scene))
        , m_metrics(m_font)
    {
    }

    void row(const LayoutLine& line)
    {
        const ModelRow& row = m_scene.model->groups()[line.group].rows[*line.place];
        const double top = line.top - m_scene.scrolled;
        const bool isMarked = m_scene.markedDevices.contains(row.deviceId);
        const QRectF area(8.0, top, kGutterWidth - 16.0, line.height);
        double taken = 0.0;
        m_painter.setFont(m_font);
        if (row.isFirstOfDevice) {
            m_painter.setPen(colour(ColourRole::Text));
            const QString device = QString::fromStdString(row.device);
            taken = m_metrics.horizontalAdvance(device) + 8.0;
            m_painter.drawText(area, Qt::AlignLeft | Qt::AlignVCenter, device);
        }
        m_painter.setPen(colour(ColourRole::MutedText));
        const QString stream = m_metrics.elidedText(QString::fromStdString(row.stream), Qt::ElideMiddle, area.width() - taken);
        m_painter.drawText(area, Qt::AlignRight | Qt::AlignVCenter, stream);
        if (isMarked)
            m_painter.fillRect(QRectF(0.0, top, 4.0, line.height), colour(ColourRole::Accent));
    }

    void heading(const LayoutLine& line)
    {
        const double top = line.top - m_scene.scrolled;
        const double width = m_scene.size.width();
        triangle(top + RowLayout::kHeadingHeight / 2.0, m_scene.collapsed.contains(line.group));
        QFont bold = m_scene.font;
        bold.setPixelSize(12);
        bold.setBold(true);
        m_painter.setFont(bold);
        m_painter.setPen(colour(ColourRole::Text));
        const QRectF area(22.0, top, width - 30.0, RowLayout::kHeadingHeight);
        const QString title = QString::fromStdString(m_scene.model->groups()[line.group].title);
        m_painter.drawText(
            area, Qt::AlignLeft | Qt::AlignVCenter, QFontMetricsF(bold).elidedText(title, Qt::ElideRight, area.width()));
        m_painter.fillRect(QRectF(0.0, top, width, 1.0), colour(ColourRole::Grid));
    }

private:
    QColor colour(ColourRole role) const { return qtColour(role, m_scene.theme); }

    void triangle(double y, bool isCollapsed)
    {
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        m_painter.setPen(Qt::NoPen);
        m_painter.setBrush(colour(ColourRole::MutedText));
        if (isCollapsed)
            m_painter.drawPolygon(QPolygonF({{9.0, y - 5.0}, {15.0, y}, {9.0, y + 5.0}}));
        else
            m_painter.drawPolygon(QPolygonF({{7.0, y - 3.0}, {17.0, y - 3.0}, {12.0, y + 3.0}}));
        m_painter.setRenderHint(QPainter::Antialiasing, false);
    }

    QPainter& m_painter;
    const RowsScene& m_scene;
    QFont m_font;
    QFontMetricsF m_metrics;
};

} // namespace

int RowsScene::columns() const
{
    return std::max(1, static_cast<int>(std::lround((size.width() - kGutterWidth) * ratio)));
}

const DrawnRow* RowsPicture::rowOf(std::size_t line) const
{
    const auto at = std::lower_bound(
        rows.begin(), rows.end(), line, [](const DrawnRow& row, std::size_t wanted) { return row.line < wanted; });
    return at != rows.end() && at->line == line ? &*at : nullptr;
}

Ticks ticksOf(const RowsScene& scene, std::optional<std::uint32_t> group)
{
    constexpr int kPixelsPerTick = 90;
    const int most = std::max(1, (scene.size.width() - kGutterWidth) / kPixelsPerTick);
    if (group)
        return timeTicks(scene.seconds(*group), most);
    return scene.axis.isStretched() ? shareTicks(scene.window, most) : timeTicks(scene.window, most);
}

void RowsPainter::paint(const RowsScene& scene, RowsPicture& picture, int newLabels)
{
    const QSize pixels(static_cast<int>(std::lround(scene.size.width() * scene.ratio)),
        static_cast<int>(std::lround(scene.size.height() * scene.ratio)));
    if (picture.image.size() != pixels)
        picture.image = QImage(pixels, QImage::Format_RGB32);
    picture.rows.clear();
    picture.hasAllLabels = true;
    startLabels(scene, labelFont(scene));
    paintPixels(scene, picture);

    QPainter painter(&picture.image);
    painter.scale(scene.ratio, scene.ratio);
    paintLabels(painter, scene, picture, newLabels);
    TextPainter texts(painter, scene);
    const auto [first, last] = scene.layout.linesIn(scene.scrolled, scene.scrolled + scene.size.height());
    for (std::size_t i = first; i < last; ++i) {
        if (scene.layout.lines()[i].isHeading())
            texts.heading(scene.layout.lines()[i]);
    }
}

void RowsPainter::paintGutter(const RowsScene& scene)
{
    Gutter wanted{QImage(), scene.model, scene.layout, scene.scrolled, scene.ratio, scene.theme, scene.font, scene.markedDevices};
    const int width = static_cast<int>(std::lround(scene.size.width() * scene.ratio)) - scene.columns();
    const int height = static_cast<int>(std::lround(scene.size.height() * scene.ratio));
    const auto key = [](const Gutter& gutter) {
        return std::tie(
            gutter.model, gutter.layout, gutter.scrolled, gutter.ratio, gutter.theme, gutter.font, gutter.markedDevices);
    };
    if (m_gutter.image.size() == QSize(width, height) && key(m_gutter) == key(wanted))
        return;
    m_gutter = std::move(wanted);
    m_gutter.image = QImage(width, height, QImage::Format_RGB32);
    m_gutter.image.fill(qtColour(ColourRole::Surface, scene.theme));
    QPainter painter(&m_gutter.image);
    painter.fillRect(QRect(width - 1, 0, 1, height), QColor(timelineColours(scene.theme).grid));
    painter.scale(scene.ratio, scene.ratio);
    TextPainter texts(painter, scene);
    const auto [first, last] = scene.layout.linesIn(scene.scrolled, scene.scrolled + scene.size.height());
    for (std::size_t i = first; i < last; ++i) {
        if (!scene.layout.lines()[i].isHeading())
            texts.row(scene.layout.lines()[i]);
    }
}

void RowsPainter::paintPixels(const RowsScene& scene, RowsPicture& picture)
{
    paintGutter(scene);
    PixelWriter writer(scene, m_gutter.image, picture.image);
    const auto [first, last] = scene.layout.linesIn(scene.scrolled, scene.scrolled + scene.size.height());
    for (std::size_t i = first; i < last; ++i) {
        const LayoutLine& line = scene.layout.lines()[i];
        if (line.isHeading()) {
            writer.heading(line);
            continue;
        }
        const ModelGroup& group = scene.model->groups()[line.group];
        m_columns.fill(*group.part, group.rows[*line.place].row, scene.seconds(line.group), writer.columns(), scene.ratio);
        writer.row(line, m_columns);
        collectCandidates(scene, line, m_columns.slices);
        picture.rows.push_back({i, m_columns.slices});
    }
    writer.finish();
}

void RowsPainter::startLabels(const RowsScene& scene, const QFont& font)
{
    constexpr std::size_t kMostKept = 20000;
    std::size_t kept = 0;
    for (const auto& labels : m_labels)
        kept += labels.size();
    if (m_labelled != scene.model || m_font != font || m_ratio != scene.ratio || kept > kMostKept) {
        m_labels.assign(scene.model->groups().size(), {});
        m_labelled = scene.model;
        m_font = font;
        m_ratio = scene.ratio;
    }
    m_candidates.clear();
}

void RowsPainter::collectCandidates(const RowsScene& scene, const LayoutLine& line, const std::vector<DrawnSlice>& slices)
{
    for (const DrawnSlice& slice : slices) {
        const double width = (slice.right - slice.left) / scene.ratio;
        if (width < kLeastLabel)
            continue;
        Candidate candidate;
        candidate.group = line.group;
        candidate.slice = slice.slice;
        candidate.left = static_cast<float>(kGutterWidth + slice.left / scene.ratio);
        candidate.width = static_cast<float>(width);
        candidate.top = static_cast<float>(line.top - scene.scrolled);
        candidate.height = static_cast<float>(line.height);
        m_candidates.push_back(candidate);
    }
}

std::vector<std::string> labelTexts(const std::string& name)
{
    std::vector<std::string> texts = {name};
    const std::size_t space = name.find(' ');
    if (const std::size_t open = name.find('('); open < space)
        return {name, name.substr(0, open)};
    if (space == std::string::npos)
        return texts;
    const std::string rest = name.substr(space + 1, name.find(" (", space) - space - 1);
    if (!name.starts_with("wait for "))
        texts.push_back(rest);
    texts.push_back(name.substr(0, space));
    return texts;
}

const RowsPainter::Labels* RowsPainter::labelsOf(std::uint32_t group, std::uint32_t name, const TimelinePart& part, int& budget)
{
    auto& known = m_labels[group];
    const auto found = known.find(name);
    if (found != known.end())
        return &found->second;
    if (budget == 0)
        return nullptr;
    --budget;
    Labels& labels = known[name];
    for (const std::string& text : labelTexts(part.timeline().text(name))) {
        Label& label = labels.emplace_back();
        label.text = QStaticText(QString::fromStdString(text));
        label.text.setTextFormat(Qt::PlainText);
        label.text.setPerformanceHint(QStaticText::AggressiveCaching);
        label.text.prepare(QTransform::fromScale(m_ratio, m_ratio), m_font);
        label.width = static_cast<float>(label.text.size().width());
    }
    return &labels;
}

void RowsPainter::keepFittingLabels(const RowsScene& scene, RowsPicture& picture, int newLabels)
{
    std::size_t kept = 0;
    for (Candidate& candidate : m_candidates) {
        const TimelinePart& part = *scene.model->groups()[candidate.group].part;
        const float room = candidate.width - 2.0F * static_cast<float>(kLabelPadding);
        const Labels* labels = labelsOf(candidate.group, part.name(candidate.slice), part, newLabels);
        picture.hasAllLabels = picture.hasAllLabels && labels != nullptr;
        if (labels == nullptr)
            continue;
        const auto fitting
            = std::find_if(labels->begin(), labels->end(), [&](const Label& label) { return label.width <= room; });
        if (fitting == labels->end())
            continue;
        candidate.label = &*fitting;
        m_candidates[kept++] = candidate;
    }
    m_candidates.resize(kept);
    const auto most = static_cast<std::size_t>(mostLabels(scene.ratio));
    if (kept <= most)
        return;
    std::nth_element(m_candidates.begin(), m_candidates.begin() + static_cast<std::ptrdiff_t>(most), m_candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.width > b.width; });
    m_candidates.resize(most);
}

void RowsPainter::paintLabels(QPainter& painter, const RowsScene& scene, RowsPicture& picture, int newLabels)
{
    keepFittingLabels(scene, picture, newLabels);
    const TimelineColours colours = timelineColours(scene.theme);
    const double lineHeight = QFontMetricsF(m_font).height();
    int secondLines = kMostSecondLines;
    painter.setFont(m_font);
    for (const Candidate& candidate : m_candidates) {
        const TimelinePart& part = *scene.model->groups()[candidate.group].part;
        const SliceCategory category = part.category(candidate.slice);
        const Slice& slice = part.timeline().slices()[candidate.slice];
        const bool hasSecond = candidate.height >= kTwoLines && secondLines > 0;
        const double height = hasSecond ? 2.0 * lineHeight : lineHeight;
        const QPointF at(candidate.left + kLabelPadding, candidate.top + (candidate.height - height) / 2.0);
        const QString second = hasSecond ? QString::fromStdString(formatSeconds(slice.durationSeconds)) : QString();
        const double secondWidth = hasSecond ? QFontMetricsF(m_font).horizontalAdvance(second) : 0.0;
        const bool drawsSecond = hasSecond && secondWidth <= candidate.width - 2.0 * kLabelPadding;
        if (sliceLook(category).hatch != Hatch::None) {
            const double width = std::max<double>(candidate.label->width, drawsSecond ? secondWidth : 0.0);
            painter.fillRect(QRectF(at.x() - 2.0, candidate.top, width + 4.0, candidate.height),
                QColor(colours.solid[static_cast<std::size_t>(category)]));
        }
        painter.setPen(colours.text[static_cast<std::size_t>(category)]);
        painter.drawStaticText(at, candidate.label->text);
        if (drawsSecond) {
            --secondLines;
            painter.drawText(at + QPointF(0.0, lineHeight + QFontMetricsF(m_font).ascent()), second);
        }
    }
}

} // namespace meshwright::ui
