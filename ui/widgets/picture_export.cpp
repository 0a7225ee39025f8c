// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/picture_export.h"

#include "core/draw/svg.h"
#include "core/support/file.h"
#include "ui/widgets/painter.h"

#include <QBuffer>
#include <QFileInfo>
#include <QImage>
#include <QPainter>
#include <QPdfWriter>

namespace meshwright::ui {

namespace {

constexpr double kPngScale = 2.0;
constexpr double kLargestSide = 16384.0; ///< pixels of a picture at scale 1
constexpr double kPointsPerPixel = 0.75;

Problem tooLarge(const DisplayList& picture)
{
    return {"MW1802",
        fmt::format("the picture is {:.0f} x {:.0f} pixels; at most {:.0f} each way can be drawn", picture.width, picture.height,
            kLargestSide),
        "export a part of it, or SVG, which has no such limit"};
}

bool drawable(const DisplayList& picture)
{
    return picture.width >= 1.0 && picture.height >= 1.0 && picture.width <= kLargestSide && picture.height <= kLargestSide;
}

std::string pngOf(const DisplayList& picture, Theme theme)
{
    QImage image(qCeil(picture.width * kPngScale), qCeil(picture.height * kPngScale), QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    painter.scale(kPngScale, kPngScale);
    paint(painter, picture, theme);
    painter.end();
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    image.save(&buffer, "PNG");
    return bytes.toStdString();
}

std::string pdfOf(const std::vector<DisplayList>& pages, Theme theme, const QString& title)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setTitle(title);
    writer.setCreator(QStringLiteral("Meshwright"));
    writer.setPageMargins(QMarginsF(0, 0, 0, 0));
    QPainter painter;
    for (const DisplayList& page : pages) {
        writer.setPageSize(
            QPageSize(QSizeF(page.width, page.height) * kPointsPerPixel, QPageSize::Point, QString(), QPageSize::ExactMatch));
        if (!painter.isActive())
            painter.begin(&writer);
        else
            writer.newPage();
        painter.resetTransform();
        const double scale = writer.resolution() / 96.0;
        painter.scale(scale, scale);
        paint(painter, page, theme);
    }
    painter.end();
    return bytes.toStdString();
}

} // namespace

Result<Done> exportPicture(const DisplayList& picture, Theme theme, const QString& path)
{
    const QString ending = QFileInfo(path).suffix().toLower();
    if (ending == QLatin1String("svg"))
        return writeFileAtomically(path.toStdString(), svgText(picture, theme));
    if (ending == QLatin1String("pdf"))
        return exportPages({picture}, theme, QString::fromStdString(picture.title), path);
    if (ending != QLatin1String("png"))
        return Problem{"MW1801", fmt::format("\"{}\" does not end in .svg, .png or .pdf", path.toStdString()),
            "give the file one of these endings"};
    if (!drawable(picture))
        return tooLarge(picture);
    return writeFileAtomically(path.toStdString(), pngOf(picture, theme));
}

Result<Done> exportPages(const std::vector<DisplayList>& pages, Theme theme, const QString& title, const QString& path)
{
    for (const DisplayList& page : pages) {
        if (!drawable(page))
            return tooLarge(page);
    }
    return writeFileAtomically(path.toStdString(), pdfOf(pages, theme, title));
}

} // namespace meshwright::ui
