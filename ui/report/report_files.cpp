// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/report_files.h"

#include "core/support/file.h"
#include "ui/report/page_layout.h"
#include "ui/widgets/picture_export.h"

#include <QFileInfo>

namespace meshwright::ui {

namespace {

Result<Done> writePdf(const sim::Report& report, const QString& path)
{
    return exportPages(pagesOf(report), Theme::Light, QString::fromStdString(report.title), path);
}

} // namespace

Result<Done> writeReport(const sim::Report& report, const QString& path)
{
    const QString ending = QFileInfo(path).suffix().toLower();
    const std::string file = path.toStdString();
    if (ending == QLatin1String("html") || ending == QLatin1String("htm"))
        return writeFileAtomically(file, sim::reportHtml(report));
    if (ending == QLatin1String("md"))
        return writeFileAtomically(file, sim::reportMarkdown(report));
    if (ending == QLatin1String("csv"))
        return writeFileAtomically(file, sim::reportCsv(report));
    if (ending == QLatin1String("json"))
        return writeFileAtomically(file, sim::reportJson(report));
    if (ending == QLatin1String("pdf"))
        return writePdf(report, path);
    return Problem{"MW1828", fmt::format("\"{}\" does not end in .html, .md, .csv, .json or .pdf", file),
        "give the file one of these endings"};
}

Result<Done> printReport(const QString& page, const QString& pdf)
{
    const auto text = readFile(page.toStdString(), sim::kLargestReportBytes);
    if (!text)
        return text.error();
    const auto report = sim::readReport(*text, page.toStdString());
    if (!report)
        return report.error();
    return writePdf(*report, pdf);
}

} // namespace meshwright::ui
