// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/page_layout.h"

#include "ui/report/page_text.h"

#include <algorithm>
#include <memory>

namespace meshwright::ui {

namespace {

using sim::ReportTone;

// Sizes of text, pixels of 1/96 inch: 12 is 9 points.
constexpr int kTitleSize = 24;
constexpr int kHeadingSize = 17;
constexpr int kBodySize = 12;
constexpr int kTableSize = 10;
constexpr int kSmallSize = 9;
constexpr double kLeading = 1.4; ///< height of a line over the size of its text
constexpr double kGap = 12.0;
constexpr double kPadding = 10.0; ///< inside cards and tiles

/// Something that is not cut by the end of a page. Its items are relative to its top left corner.
struct Piece {
    std::vector<DisplayItem> items = {};
    double height = 0.0;
    double before = 0.0; ///< space above it, but at the top of a page
    bool withNext = false; ///< a heading: not the last on its page
    std::shared_ptr<const Piece> head = {}; ///< of a table: stands above it again where it is the first on its page
};

struct Scaler {
    double factor = 1.0;

    void point(Point& p) const { p = {p.x * factor, p.y * factor}; }
    void points(std::vector<Point>& all) const
    {
        for (Point& p : all)
            point(p);
    }
    void operator()(RectShape& rect) const
    {
        point(rect.topLeft);
        rect.width *= factor;
        rect.height *= factor;
        rect.style.outlineWidth *= factor;
        rect.cornerRadius *= factor;
    }
    void operator()(PolygonShape& polygon) const
    {
        points(polygon.corners);
        polygon.style.outlineWidth *= factor;
    }
    void operator()(LineShape& line) const
    {
        point(line.from);
        point(line.to);
        line.width *= factor;
    }
    void operator()(PolylineShape& line) const
    {
        points(line.points);
        line.width *= factor;
    }
    void operator()(TextShape& text) const
    {
        point(text.at);
        text.size *= factor;
    }
};

DisplayList scaled(DisplayList list, double factor)
{
    list.width *= factor;
    list.height *= factor;
    for (DisplayItem& item : list.items)
        std::visit(Scaler{factor}, item.shape);
    return list;
}

void addMoved(Piece& piece, const std::vector<DisplayItem>& items, Point by)
{
    DisplayList target;
    target.items = std::move(piece.items);
    DisplayList source;
    source.items = items;
    meshwright::addMoved(target, source, by);
    piece.items = std::move(target.items);
}

ColourRole colourOfTone(ReportTone tone)
{
    switch (tone) {
    case ReportTone::Good:
        return ColourRole::ReduceScatter;
    case ReportTone::Warning:
        return ColourRole::Warning;
    case ReportTone::Error:
        return ColourRole::Error;
    case ReportTone::Neutral:
        break;
    }
    return ColourRole::Accent;
}

RectShape box(double x, double y, double width, double height, Paint fill, Paint outline = {}, double radius = 0.0)
{
    RectShape rect{{x, y}, width, height, {}, radius};
    rect.style.fill = fill;
    rect.style.outline = outline;
    return rect;
}

/// A stack of text on a piece: each call adds below what is there.
class Stack {
public:
    Stack(PageText& text, double x, double width, double y = 0.0)
        : m_text(text)
        , m_x(x)
        , m_width(width)
        , m_y(y)
    {
    }

    void add(const std::string& words, int size, ColourRole role = ColourRole::Text, bool bold = false)
    {
        if (words.empty())
            return;
        const double height = size * kLeading;
        for (std::string& line : m_text.lines(words, size, bold, m_width)) {
            m_items.push_back({TextShape{
                {m_x, m_y + height / 2.0}, std::move(line), static_cast<double>(size), TextAnchor::Start, role, bold}});
            m_y += height;
        }
    }

    /// The small print of what opens.
    void add(const sim::ReportOpening& opening)
    {
        add(opening.text, kSmallSize, ColourRole::MutedText);
        add(opening.formula, kSmallSize, ColourRole::Text);
        std::string inputs;
        for (const sim::ReportInput& input : opening.inputs) {
            inputs += (inputs.empty() ? "" : "; ") + input.name + " = " + input.value;
            if (!input.source.empty())
                inputs += " (" + input.source + ")";
        }
        add(inputs, kSmallSize, ColourRole::MutedText);
    }

    void skip(double height) { m_y += height; }
    double y() const { return m_y; }
    void put(DisplayItem item) { m_items.push_back(std::move(item)); }
    const std::vector<DisplayItem>& items() const { return m_items; }

private:
    PageText& m_text;
    double m_x;
    double m_width;
    double m_y;
    std::vector<DisplayItem> m_items;
};

/// Turns a report into pieces, one below the other.
class PieceWriter {
public:
    explicit PieceWriter(double width, double pageHeight)
        : m_width(width)
        , m_pageHeight(pageHeight)
    {
    }

    std::vector<Piece> pieces(const sim::Report& report)
    {
        begin(report);
        answers(report.answers);
        for (const sim::ReportSection& section : report.sections) {
            heading(section.title);
            for (const sim::ReportBlock& block : section.blocks) {
                m_isLastBlock = &block == &section.blocks.back();
                std::visit([this](const auto& one) { write(one); }, block);
            }
        }
        return std::move(m_pieces);
    }

private:
    Piece& addPiece(const Stack& stack, double before)
    {
        Piece piece;
        piece.items = stack.items();
        piece.height = stack.y();
        piece.before = before;
        m_pieces.push_back(std::move(piece));
        return m_pieces.back();
    }

    void begin(const sim::Report& report)
    {
        Stack stack(m_text, 0.0, m_width);
        stack.add("Meshwright report", kTableSize, ColourRole::MutedText);
        stack.add(report.title, kTitleSize, ColourRole::Text, true);
        stack.skip(6.0);
        std::string facts;
        for (const sim::ReportInput& fact : report.facts)
            facts += (facts.empty() ? "" : "      ") + fact.name + ": " + fact.value;
        stack.add(facts, kTableSize, ColourRole::MutedText);
        addPiece(stack, 0.0);
    }

    /// `count` things beside each other, each `cell` of a width, in rows that are as high as their highest.
    template <typename Draw>
    void rows(std::size_t count, std::size_t across, double before, Draw draw)
    {
        const double width = (m_width - kGap * static_cast<double>(across - 1)) / static_cast<double>(across);
        for (std::size_t first = 0; first < count; first += across) {
            std::vector<Piece> cells;
            Piece row;
            row.before = first == 0 ? before : kGap;
            for (std::size_t i = first; i < std::min(first + across, count); ++i) {
                cells.push_back(draw(i, width));
                row.height = std::max(row.height, cells.back().height);
            }
            for (std::size_t i = 0; i < cells.size(); ++i) {
                const double x = static_cast<double>(i) * (width + kGap);
                if (cells[i].withNext) // it has a card, which is as high as the row
                    row.items.push_back({box(x, 0.0, width, row.height, ColourRole::Surface, ColourRole::Grid, 5.0)});
                addMoved(row, cells[i].items, {x, 0.0});
            }
            m_pieces.push_back(std::move(row));
        }
    }

    void answers(const std::vector<sim::ReportAnswer>& answers)
    {
        rows(answers.size(), 2, 18.0, [&](std::size_t i, double width) {
            const sim::ReportAnswer& answer = answers[i];
            const double room = width - 2.0 * kPadding;
            Stack stack(m_text, kPadding, room, kPadding);
            stack.put({box(0.0, 0.0, width, 3.0, colourOfTone(answer.tone))});
            stack.add(answer.question, kTableSize, ColourRole::MutedText);
            stack.add(answer.headline, m_text.width(answer.headline, 20, true) <= room ? 20 : 15, ColourRole::Text, true);
            stack.add(answer.value.text, kBodySize);
            if (answer.share) {
                stack.skip(5.0);
                stack.put({box(kPadding, stack.y(), room, 5.0, ColourRole::Grid)});
                stack.put({box(kPadding, stack.y(), room * std::clamp(*answer.share, 0.0, 1.0), 5.0, colourOfTone(answer.tone))});
                stack.skip(5.0);
            }
            stack.skip(5.0);
            stack.add(answer.sentence, 11, ColourRole::MutedText);
            stack.skip(4.0);
            stack.add(answer.command, kSmallSize);
            stack.add(answer.opening);
            stack.skip(kPadding);
            return Piece{stack.items(), stack.y(), 0.0, true, {}};
        });
    }

    void heading(const std::string& title)
    {
        Stack stack(m_text, 0.0, m_width);
        stack.add(title, kHeadingSize, ColourRole::Text, true);
        stack.skip(2.0);
        addPiece(stack, 26.0).withNext = true;
    }

    void smallHeading(const std::string& title)
    {
        if (title.empty())
            return;
        Stack stack(m_text, 0.0, m_width);
        stack.add(title, 11, ColourRole::Text, true);
        addPiece(stack, 14.0).withNext = true;
    }

    void write(const sim::ReportParagraph& paragraph)
    {
        const bool marked = paragraph.tone != ReportTone::Neutral;
        const double indent = marked ? kPadding + 3.0 : 0.0;
        Stack stack(m_text, indent, m_width - indent - (marked ? kPadding : 0.0), marked ? 5.0 : 0.0);
        stack.add(paragraph.text, kBodySize);
        if (!marked) {
            const bool opensSection = !m_pieces.empty() && m_pieces.back().withNext;
            addPiece(stack, 6.0).withNext = opensSection && !m_isLastBlock;
            return;
        }
        stack.skip(5.0);
        Piece piece;
        piece.before = 8.0;
        piece.height = stack.y();
        piece.items.push_back({box(0.0, 0.0, m_width, piece.height, ColourRole::Surface)});
        piece.items.push_back({box(0.0, 0.0, 3.0, piece.height, colourOfTone(paragraph.tone))});
        addMoved(piece, stack.items(), {});
        m_pieces.push_back(std::move(piece));
    }

    void write(const sim::ReportFigures& figures)
    {
        rows(figures.figures.size(), 3, 12.0, [&](std::size_t i, double width) {
            const sim::ReportFigure& figure = figures.figures[i];
            Stack stack(m_text, kPadding, width - 2.0 * kPadding, 7.0);
            stack.add(figure.label, kTableSize, ColourRole::MutedText);
            stack.add(figure.value.text, 14, ColourRole::Text, true);
            stack.skip(2.0);
            stack.add(figure.opening);
            stack.skip(7.0);
            return Piece{stack.items(), stack.y(), 0.0, true, {}};
        });
    }

    /// The widths of a table's columns: as wide as their texts where there is room; otherwise the widest give way.
    std::vector<double> columnWidths(const sim::ReportTable& table)
    {
        constexpr double kBetween = 14.0;
        std::vector<double> wanted;
        for (std::size_t c = 0; c < table.columns.size(); ++c) {
            double width = m_text.width(table.columns[c].title, kTableSize);
            for (const sim::ReportRow& row : table.rows)
                width = std::max(width, m_text.width(row.cells[c].text, kTableSize));
            wanted.push_back(width + kBetween);
        }
        double sum = 0.0;
        for (const double width : wanted)
            sum += width;
        if (sum <= m_width) {
            wanted.front() += m_width - sum;
            return wanted;
        }
        // The largest width that no column may exceed, so that all together fit.
        double low = 0.0;
        double high = m_width;
        for (int i = 0; i < 40; ++i) {
            const double cap = (low + high) / 2.0;
            double total = 0.0;
            for (const double width : wanted)
                total += std::min(width, cap);
            (total > m_width ? high : low) = cap;
        }
        for (double& width : wanted)
            width = std::min(width, low);
        return wanted;
    }

    /// One row of a table: cells side by side, each wrapped in its column. Returns its height.
    double cells(std::vector<DisplayItem>& items, const std::vector<std::string>& texts, const sim::ReportTable& table,
        const std::vector<double>& widths, ColourRole role)
    {
        constexpr double kLine = kTableSize * kLeading;
        double x = 0.0;
        double height = kLine;
        for (std::size_t c = 0; c < texts.size(); ++c) {
            const double room = std::max(8.0, widths[c] - 12.0);
            const bool right = table.columns[c].numeric;
            double y = 0.0;
            for (std::string& line : m_text.lines(texts[c], kTableSize, false, room)) {
                items.push_back({TextShape{{right ? x + room : x, y + kLine / 2.0}, std::move(line),
                    static_cast<double>(kTableSize), right ? TextAnchor::End : TextAnchor::Start, role, false}});
                y += kLine;
            }
            height = std::max(height, y);
            x += widths[c];
        }
        return height;
    }

    void write(const sim::ReportTable& table)
    {
        smallHeading(table.title);
        const std::vector<double> widths = columnWidths(table);
        auto head = std::make_shared<Piece>();
        std::vector<std::string> titles;
        for (const sim::ReportColumn& column : table.columns)
            titles.push_back(column.title);
        head->height = cells(head->items, titles, table, widths, ColourRole::MutedText) + 3.0;
        head->items.push_back({LineShape{{0.0, head->height}, {m_width, head->height}, ColourRole::Outline, 0.8}});
        head->height += 3.0;
        head->before = 4.0;
        head->withNext = true;
        m_pieces.push_back(*head);
        for (const sim::ReportRow& row : table.rows)
            m_pieces.push_back(rowPiece(row, table, widths, head));
        note(table.note);
    }

    Piece rowPiece(const sim::ReportRow& row, const sim::ReportTable& table, const std::vector<double>& widths,
        const std::shared_ptr<const Piece>& head)
    {
        Piece piece;
        piece.before = 2.0;
        piece.head = head;
        std::vector<std::string> texts;
        for (const sim::ReportValue& cell : row.cells)
            texts.push_back(cell.text);
        piece.height = cells(piece.items, texts, table, widths, ColourRole::Text);
        if (!row.opening.empty()) {
            Stack stack(m_text, 0.0, m_width - 12.0, piece.height);
            stack.add(row.opening);
            addMoved(piece, stack.items(), {});
            piece.height = stack.y();
        }
        piece.height += 2.0;
        piece.items.push_back({LineShape{{0.0, piece.height}, {m_width, piece.height}, ColourRole::Grid, 0.6}});
        piece.height += 1.0;
        return piece;
    }

    void note(const std::string& words)
    {
        if (words.empty())
            return;
        Stack stack(m_text, 0.0, m_width);
        stack.add(words, kSmallSize, ColourRole::MutedText);
        addPiece(stack, 4.0);
    }

    Piece picturePiece(const sim::ReportPicture& picture, double width)
    {
        Piece piece;
        const double factor
            = std::min({1.0, width / std::max(1.0, picture.list.width), 0.7 * m_pageHeight / std::max(1.0, picture.list.height)});
        const DisplayList list = scaled(picture.list, factor);
        piece.items = list.items;
        Stack stack(m_text, 0.0, width, list.height);
        stack.add(picture.caption, kTableSize, ColourRole::MutedText);
        addMoved(piece, stack.items(), {});
        piece.height = stack.y() + 2.0;
        return piece;
    }

    void write(const sim::ReportPictures& pictures)
    {
        const bool wide = std::any_of(pictures.pictures.begin(), pictures.pictures.end(),
            [this](const sim::ReportPicture& picture) { return picture.list.width > 0.75 * m_width; });
        rows(pictures.pictures.size(), wide ? 1 : 2, 10.0,
            [&](std::size_t i, double width) { return picturePiece(pictures.pictures[i], width); });
    }

    void write(const sim::ReportProblems& problems)
    {
        for (const sim::ReportProblem& problem : problems.problems) {
            Stack stack(m_text, kPadding, m_width - kPadding);
            stack.add(std::string(severityName(problem.severity)) + " " + problem.id + ": " + problem.message, kBodySize,
                problem.severity == Severity::Error         ? ColourRole::Error
                    : problem.severity == Severity::Warning ? ColourRole::Warning
                                                            : ColourRole::Text);
            if (!problem.rule.empty())
                stack.add("Rule: " + problem.rule, kTableSize);
            if (!problem.fix.empty())
                stack.add("Fix: " + problem.fix, kTableSize);
            stack.add(problem.where, kSmallSize, ColourRole::MutedText);
            addPiece(stack, 8.0);
        }
    }

    /// A line each, so that it may go over several pages; the panel behind it is drawn line by line.
    void write(const sim::ReportCode& code)
    {
        smallHeading(code.title);
        std::string words = code.text;
        while (!words.empty() && words.back() == '\n')
            words.pop_back();
        constexpr double kLine = kTableSize * kLeading;
        const std::vector<std::string> lines = m_text.lines(words, kTableSize, false, m_width - 2.0 * kPadding);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            Piece piece;
            piece.before = i == 0 ? 4.0 : 0.0;
            const double above = i == 0 ? 6.0 : 0.0;
            const double below = i + 1 == lines.size() ? 6.0 : 0.0;
            piece.height = above + kLine + below;
            piece.items.push_back({box(0.0, 0.0, m_width, piece.height + (below > 0.0 ? 0.0 : 0.5), ColourRole::Surface)});
            piece.items.push_back({TextShape{{kPadding, above + kLine / 2.0}, lines[i], static_cast<double>(kTableSize)}});
            m_pieces.push_back(std::move(piece));
        }
    }

    double m_width;
    double m_pageHeight;
    PageText m_text;
    bool m_isLastBlock = false; ///< of its section
    std::vector<Piece> m_pieces;
};

/// Puts pieces on pages.
class Paginator {
public:
    explicit Paginator(const PageGeometry& geometry)
        : m_geometry(geometry)
    {
        newPage();
    }

    std::vector<DisplayList> pages(const std::vector<Piece>& pieces)
    {
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            if (!isEmpty() && m_y + needed(pieces, i) > bottom())
                newPage();
            if (isEmpty() && pieces[i].head)
                place(*pieces[i].head);
            place(pieces[i]);
        }
        return std::move(m_pages);
    }

private:
    double top() const { return m_geometry.topMargin; }
    double bottom() const { return m_geometry.height - m_geometry.bottomMargin; }
    bool isEmpty() const { return m_y <= top(); }

    void newPage()
    {
        DisplayList page;
        page.width = m_geometry.width;
        page.height = m_geometry.height;
        m_pages.push_back(std::move(page));
        m_y = top();
    }

    /// The height of a piece and of all that must stay with it.
    static double needed(const std::vector<Piece>& pieces, std::size_t first)
    {
        double height = 0.0;
        for (std::size_t i = first; i < pieces.size(); ++i) {
            height += pieces[i].before + pieces[i].height;
            if (!pieces[i].withNext)
                break;
        }
        return height;
    }

    void place(const Piece& piece)
    {
        m_y += isEmpty() ? 0.0 : piece.before;
        DisplayList part;
        part.items = piece.items;
        addMoved(m_pages.back(), part, {m_geometry.sideMargin, m_y});
        m_y += piece.height;
    }

    const PageGeometry& m_geometry;
    std::vector<DisplayList> m_pages;
    double m_y = 0.0;
};

} // namespace

std::vector<DisplayList> pagesOf(const sim::Report& report, const PageGeometry& geometry)
{
    const double width = geometry.width - 2.0 * geometry.sideMargin;
    const double height = geometry.height - geometry.topMargin - geometry.bottomMargin;
    std::vector<DisplayList> pages = Paginator(geometry).pages(PieceWriter(width, height).pieces(report));
    constexpr std::size_t kMostOfTitle = 120; // stands on every page
    const std::string title = QString::fromStdString(report.title).left(kMostOfTitle).toStdString();
    for (std::size_t i = 0; i < pages.size(); ++i) {
        DisplayList& page = pages[i];
        const std::string number = fmt::format("{} of {}", i + 1, pages.size());
        page.title = fmt::format("{}: report, page {}", title, number);
        const double y = geometry.height - geometry.bottomMargin / 2.0;
        page.items.push_back({TextShape{
            {geometry.sideMargin, y}, title, static_cast<double>(kSmallSize), TextAnchor::Start, ColourRole::MutedText}});
        page.items.push_back({TextShape{{geometry.width - geometry.sideMargin, y}, number, static_cast<double>(kSmallSize),
            TextAnchor::End, ColourRole::MutedText}});
    }
    return pages;
}

} // namespace meshwright::ui
