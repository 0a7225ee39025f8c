// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/layout_grid.h"

#include <QWidget>

#include <optional>
#include <vector>

class QComboBox;
class QGridLayout;
class QLabel;
class QSlider;

namespace meshwright::ui {

/// Which two dimensions of an array of rank 3 and up are seen, and through which slice of each of the others. Hidden for lower ranks.
class SliceControls : public QWidget {
    Q_OBJECT

public:
    explicit SliceControls(QWidget* parent = nullptr);

    /// Arrays of the same shape keep the choice; others start with the last two dimensions and the first slices.
    void setLayoutShown(const Layout& layout);

    /// The choice; nothing below rank 3.
    std::optional<LayoutCut> cut() const;

Q_SIGNALS:
    void changed();

private:
    /// One dimension that is cut.
    struct Slice {
        std::size_t dim = 0;
        std::vector<IndexRange> tiles;
        QSlider* slider = nullptr;
        QLabel* label = nullptr;
    };

    void chooseDim(QComboBox* chosen, QComboBox* other, std::size_t& dim, std::size_t& otherDim);
    void rebuildSlices();
    void showSlice(const Slice& slice);

    Layout m_layout;
    LayoutCut m_cut;
    bool m_isChosen = false; ///< rows or columns are the user's choice
    QComboBox* m_rows;
    QComboBox* m_columns;
    QGridLayout* m_grid;
    std::vector<Slice> m_slices;
};

} // namespace meshwright::ui
