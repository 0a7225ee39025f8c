// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/draw_reshard.h"
#include "tests/core/draw/picture_checks.h"
#include "tests/test_class.h"

namespace tst_draw_reshard {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

ReshardFrame frameOfParts(const char* heading, std::vector<std::vector<HeldPart>> held)
{
    return {heading, "P('x'), 64 B a device", std::move(held)};
}

/// Rows over two devices become columns: each keeps a quarter and gets another.
ReshardDrawing rowsToColumns()
{
    ReshardDrawing drawing;
    drawing.shape = {8, 8};
    drawing.devices = {0, 1};
    drawing.frames = {frameOfParts("f32[8,8] on x=2", {{{{{0, 4}, {0, 8}}, {0}}}, {{{{4, 8}, {0, 8}}, {1}}}}),
        frameOfParts("1. all_to_all over x",
            {{{{{0, 4}, {0, 4}}, {0}}, {{{4, 8}, {0, 4}}, {1}}}, {{{{0, 4}, {4, 8}}, {0}}, {{{4, 8}, {4, 8}}, {1}}}})};
    return drawing;
}

} // namespace

class TestDrawReshard : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whoGaveWhat();
    void sums();
    void leadingDimensions();
    void manyDevices();
};

void TestDrawReshard::whoGaveWhat()
{
    const ReshardDrawing drawing = rowsToColumns();
    const std::vector<DisplayList> frames = drawReshard(drawing);
    QCOMPARE(frames.size(), std::size_t{2});
    QCOMPARE(frames[0].width, frames[1].width);
    QCOMPARE(frames[0].height, frames[1].height);
    for (const DisplayList& frame : frames)
        QCOMPARE(faultsOf(frame), QString());
    QVERIFY(textsOf(frames[1]).contains("from 1"));
    QVERIFY(!textsOf(frames[0]).contains("from 1"));
    QCOMPARE(tooltipOf(frames[1], "device:0"), QString("device 0\n[0:4, 0:4]\n[4:8, 0:4] from device 1"));
    // What came from device 1 has its colour, in the panel of device 0.
    const DeviceColours colours(drawing.devices);
    int fromOther = 0;
    const auto items = itemsOf(frames[1]);
    for (auto [item, end] = items.equal_range("device:0"); item != end; ++item) {
        const auto* rect = std::get_if<RectShape>(&item->second.shape);
        fromOther += rect != nullptr && rect->style.fill == Paint(colours.of(1)) ? 1 : 0;
    }
    QCOMPARE(fromOther, 1);
}

void TestDrawReshard::sums()
{
    ReshardDrawing drawing = rowsToColumns();
    drawing.frames = {frameOfParts("1. all_reduce over x", {{{{{0, 8}, {0, 8}}, {0, 1}}}, {{{{0, 8}, {0, 8}}, {0, 1}}}})};
    const DisplayList frame = drawReshard(drawing).front();
    QCOMPARE(faultsOf(frame), QString());
    QVERIFY(textsOf(frame).contains("sum of 2"));
    const auto items = itemsOf(frame);
    QVERIFY(std::any_of(items.begin(), items.end(), [](const auto& item) {
        const auto* rect = std::get_if<RectShape>(&item.second.shape);
        return rect != nullptr && rect->style.hatch != Hatch::None;
    }));
}

/// Each half of the leading dimension is a sheet of its own; a scalar and a vector have panels too.
void TestDrawReshard::leadingDimensions()
{
    ReshardDrawing drawing;
    drawing.shape = {2, 4, 4};
    drawing.devices = {0, 1};
    drawing.frames = {frameOfParts("f32[2,4,4]", {{{{{0, 1}, {0, 4}, {0, 4}}, {0}}}, {{{{1, 2}, {0, 4}, {0, 4}}, {1}}}})};
    const DisplayList frame = drawReshard(drawing).front();
    QCOMPARE(itemsOf(frame).count("device:0"), std::size_t{3}); // two sheets, one of them filled
    drawing.shape = {};
    drawing.frames = {frameOfParts("f32[]", {{{{}, {0}}}, {{{}, {1}}}})};
    QCOMPARE(itemsOf(drawReshard(drawing).front()).count("device:1"), std::size_t{2});
    drawing.shape = {6};
    drawing.frames = {frameOfParts("f32[6]", {{{{{0, 3}}, {0}}}, {{{{3, 6}}, {1}}}})};
    QCOMPARE(faultsOf(drawReshard(drawing).front()), QString());
}

void TestDrawReshard::manyDevices()
{
    ReshardDrawing drawing;
    drawing.shape = {100};
    ReshardFrame frame = frameOfParts("f32[100] on x=100", {});
    for (DeviceId device = 0; device < 100; ++device) {
        drawing.devices.push_back(device);
        frame.held.push_back({{{{device, device + 1}}, {device}}});
    }
    drawing.frames = {frame};
    const DisplayList list = drawReshard(drawing).front();
    QCOMPARE(faultsOf(list), QString());
    QVERIFY(itemOf(list, "device:63") != nullptr);
    QVERIFY(itemOf(list, "device:64") == nullptr);
    QVERIFY(textsOf(list).join(' ').contains("36 more devices"));
}

MESHWRIGHT_TEST(TestDrawReshard)

} // namespace tst_draw_reshard

#include "tst_draw_reshard.moc"
