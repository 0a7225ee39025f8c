// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/slice_controls.h"

#include <QBoxLayout>
#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QSlider>

#include <numeric>

namespace meshwright::ui {

namespace {

constexpr int kSlicesAcross = 2;

QComboBox* addCombo(QBoxLayout* layout, const QString& title, QWidget* parent)
{
    auto* label = new QLabel(title, parent);
    auto* combo = new QComboBox(parent);
    label->setBuddy(combo);
    combo->setAccessibleName(title);
    layout->addWidget(label);
    layout->addWidget(combo);
    return combo;
}

/// The two dimensions that are cut into the most pieces, the later ones where as many: a picture along whole ones shows one piece.
std::pair<std::size_t, std::size_t> mostSplitDims(const Layout& layout)
{
    std::vector<std::size_t> dims(layout.shape.size());
    std::iota(dims.rbegin(), dims.rend(), std::size_t{0});
    std::stable_sort(dims.begin(), dims.end(),
        [&](std::size_t a, std::size_t b) { return tilesAlong(layout, a).size() > tilesAlong(layout, b).size(); });
    return std::minmax(dims[0], dims[1]);
}

} // namespace

SliceControls::SliceControls(QWidget* parent)
    : QWidget(parent)
    , m_grid(new QGridLayout)
{
    auto* dims = new QHBoxLayout;
    dims->setSpacing(6);
    m_rows = addCombo(dims, tr("&Rows"), this);
    dims->addSpacing(6);
    m_columns = addCombo(dims, tr("&Columns"), this);
    dims->addStretch();
    m_grid->setHorizontalSpacing(6);
    m_grid->setVerticalSpacing(4);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(4);
    layout->addLayout(dims);
    layout->addLayout(m_grid);
    connect(m_rows, &QComboBox::activated, this, [this] { chooseDim(m_rows, m_columns, m_cut.rowDim, m_cut.columnDim); });
    connect(m_columns, &QComboBox::activated, this, [this] { chooseDim(m_columns, m_rows, m_cut.columnDim, m_cut.rowDim); });
    hide();
}

void SliceControls::setLayoutShown(const Layout& layout)
{
    const bool sameShape = layout.shape == m_layout.shape;
    m_layout = layout;
    const std::size_t rank = layout.shape.size();
    if (rank <= 2)
        return hide();
    if (!sameShape || m_rows->count() == 0) {
        m_isChosen = false;
        m_cut.at = Shape(rank, 0);
        m_rows->clear();
        m_columns->clear();
        for (std::size_t dim = 0; dim < rank; ++dim) {
            const QString text = tr("dim %1: %2").arg(dim).arg(layout.shape[dim]);
            m_rows->addItem(text);
            m_columns->addItem(text);
        }
    }
    if (!m_isChosen) {
        std::tie(m_cut.rowDim, m_cut.columnDim) = mostSplitDims(layout);
        m_rows->setCurrentIndex(static_cast<int>(m_cut.rowDim));
        m_columns->setCurrentIndex(static_cast<int>(m_cut.columnDim));
    }
    rebuildSlices();
    show(); // last: this lays the view out anew, which draws it with the new cut
}

std::optional<LayoutCut> SliceControls::cut() const
{
    return m_layout.shape.size() > 2 ? std::optional(m_cut) : std::nullopt;
}

void SliceControls::chooseDim(QComboBox* chosen, QComboBox* other, std::size_t& dim, std::size_t& otherDim)
{
    const auto wanted = static_cast<std::size_t>(chosen->currentIndex());
    if (wanted == dim)
        return;
    m_isChosen = true;
    if (wanted == otherDim) { // the two change places
        otherDim = dim;
        other->setCurrentIndex(static_cast<int>(otherDim));
    }
    dim = wanted;
    rebuildSlices();
    Q_EMIT changed();
}

void SliceControls::rebuildSlices()
{
    for (const Slice& slice : m_slices) {
        slice.slider->deleteLater();
        slice.label->deleteLater();
        m_grid->removeWidget(slice.slider);
        m_grid->removeWidget(slice.label);
    }
    m_slices.clear();
    for (std::size_t dim = 0; dim < m_layout.shape.size(); ++dim) {
        if (dim == m_cut.rowDim || dim == m_cut.columnDim)
            continue;
        Slice slice{dim, tilesAlong(m_layout, dim), new QSlider(Qt::Horizontal, this), new QLabel(this)};
        const auto held = std::find_if(slice.tiles.begin(), slice.tiles.end(),
            [&](const IndexRange& tile) { return tile.start <= m_cut.at[dim] && m_cut.at[dim] < tile.stop; });
        const auto at = static_cast<int>(held == slice.tiles.end() ? 0 : held - slice.tiles.begin());
        m_cut.at[dim] = slice.tiles[static_cast<std::size_t>(at)].start;
        slice.slider->setRange(0, static_cast<int>(slice.tiles.size()) - 1);
        slice.slider->setPageStep(1);
        slice.slider->setValue(at);
        slice.slider->setEnabled(slice.tiles.size() > 1);
        slice.slider->setAccessibleName(tr("Slice of dimension %1").arg(dim));
        slice.slider->setObjectName(QStringLiteral("slice%1").arg(dim));
        slice.slider->setMaximumWidth(200);
        const auto place = static_cast<int>(m_slices.size());
        m_grid->addWidget(slice.label, place / kSlicesAcross, 2 * (place % kSlicesAcross));
        m_grid->addWidget(slice.slider, place / kSlicesAcross, 2 * (place % kSlicesAcross) + 1);
        showSlice(slice);
        const std::size_t index = m_slices.size();
        connect(slice.slider, &QSlider::valueChanged, this, [this, index](int value) {
            const Slice& moved = m_slices[index];
            m_cut.at[moved.dim] = moved.tiles[static_cast<std::size_t>(value)].start;
            showSlice(moved);
            Q_EMIT changed();
        });
        m_slices.push_back(std::move(slice));
    }
    m_grid->setColumnStretch(2 * kSlicesAcross, 1);
}

void SliceControls::showSlice(const Slice& slice)
{
    const auto at = static_cast<std::size_t>(slice.slider->value());
    const IndexRange& tile = slice.tiles[at];
    slice.label->setText(slice.tiles.size() == 1 ? tr("dim %1: 0:%2, not split").arg(slice.dim).arg(tile.stop)
                                                 : tr("dim %1: %2:%3, slice %4 of %5")
                                                       .arg(slice.dim)
                                                       .arg(tile.start)
                                                       .arg(tile.stop)
                                                       .arg(at + 1)
                                                       .arg(slice.tiles.size()));
}

} // namespace meshwright::ui

#include "moc_slice_controls.cpp"
