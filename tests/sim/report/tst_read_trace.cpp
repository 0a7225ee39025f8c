// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/read_trace.h"

#include "sim/report/trace.h"
#include "tests/test_class.h"

#include <sstream>

namespace tst_read_trace {

using namespace meshwright;
using namespace meshwright::sim;

/// Traces of other programs as rows of slices.
class TestReadTrace : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void readsWhatIsWritten();
    void readsWhatProfilersWrite();
    void timesSince1970AreRead();
    void onlyKernelsAreOfDevices_data();
    void onlyKernelsAreOfDevices();
    void slicesWithinSlicesHaveRowsOfTheirOwn();
    void tellsCategoriesByNames_data();
    void tellsCategoriesByNames();
    void isTold();
    void refusesWhatHasNoSlices_data();
    void refusesWhatHasNoSlices();
    void aFileThatWasCutOffHasWhatComesBefore();
};

namespace {

Result<ForeignTrace> read(const std::string& text)
{
    std::istringstream stream(text);
    return readTraceJson(stream, "t.json");
}

} // namespace

void TestReadTrace::readsWhatIsWritten()
{
    Timeline written(Clock::Simulated);
    const std::uint32_t compute = written.addRow(0, "compute");
    const std::uint32_t exchange = written.addRow(3, "collectives over data");
    Slice slice;
    slice.row = compute;
    slice.name = written.intern("dot \"quoted\"");
    slice.startSeconds = 0.0;
    slice.durationSeconds = 1e-3;
    written.add(slice);
    slice.row = exchange;
    slice.name = written.intern("all_reduce grad.layers.0.w");
    slice.detail = written.intern("ring");
    slice.category = SliceCategory::AllReduce;
    slice.startSeconds = 0.5e-3;
    slice.bytes = 4096;
    written.add(slice);
    written.sort();

    const ForeignTrace trace = valueOf(read(traceJson({{"a run", &written}})));
    QCOMPARE(trace.leftOut, 0);
    QCOMPARE(trace.timeline.rows().size(), std::size_t{2});
    QCOMPARE(trace.timeline.rows()[1].stream, std::string("collectives over data"));
    QCOMPARE(trace.timeline.rows()[1].device, 1); // processes are counted
    const std::vector<Slice>& slices = trace.timeline.slices();
    QCOMPARE(slices.size(), std::size_t{2});
    QCOMPARE(trace.timeline.text(slices[0].name), std::string("dot \"quoted\""));
    QCOMPARE(slices[0].category, SliceCategory::Compute);
    QCOMPARE(slices[1].category, SliceCategory::AllReduce);
    QCOMPARE(slices[1].bytes, 4096);
    QCOMPARE(trace.timeline.text(slices[1].detail), std::string("ring"));
    QVERIFY(std::fabs(slices[1].startSeconds - 0.5e-3) < 1e-9 && std::fabs(slices[1].durationSeconds - 1e-3) < 1e-9);
}

void TestReadTrace::readsWhatProfilersWrite()
{
    const ForeignTrace trace = valueOf(read(R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "ph": "X", "ts": 0, "dur": 9}],
        "traceEvents": [
        {"ph": "M", "pid": 10, "tid": 7, "name": "thread_name", "args": {"name": "stream 7"}},
        {"ph": "X", "pid": 10, "tid": 7, "ts": 1000.5, "dur": 20, "name": "gemm", "cat": "kernel"},
        {"ph": "X", "pid": 10, "tid": 20, "ts": 1010.5, "dur": 5, "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "cat": "kernel"},
        {"ph": "B", "pid": 9, "tid": "main", "ts": 1000, "name": "aten::mm", "cat": "cpu_op"},
        {"ph": "E", "pid": 9, "tid": "main", "ts": 1002},
        {"ph": "B", "pid": 9, "tid": "main", "ts": 1003, "name": "never ends"},
        {"ph": "i", "pid": 9, "tid": "main", "ts": 1, "name": "an instant"}, 5, null],
        "after": {"ph": "X", "ts": 0, "dur": 1}})"));
    QCOMPARE(trace.leftOut, 1);
    QCOMPARE(trace.timeline.slices().size(), std::size_t{3});
    QCOMPARE(trace.timeline.rows().front().device, kHostRow);
    QCOMPARE(trace.timeline.rows()[1].device, 0);
    QCOMPARE(trace.timeline.rows().front().stream, std::string("thread main"));
    QCOMPARE(trace.timeline.rows()[1].stream, std::string("stream 7"));
    QCOMPARE(trace.timeline.slices()[0].category, SliceCategory::Host);
    QCOMPARE(trace.timeline.slices()[2].category, SliceCategory::AllReduce);
    QCOMPARE(trace.timeline.slices()[0].startSeconds, 0.0);
    QVERIFY(std::fabs(trace.timeline.endSeconds() - 20.5e-6) < 1e-12);
}

/// As PyTorch's profiler wrote them before it had a base time; kernels have the names of C++.
void TestReadTrace::timesSince1970AreRead()
{
    const ForeignTrace trace = valueOf(read(R"json([
        {"ph":"X","cat":"kernel","name":"void at::native::add<float>(int)","pid":0,"tid":7,"ts":1682725898237042,"dur":40},
        {"ph":"X","cat":"kernel","name":"void permute_021<half>()","pid":0,"tid":7,"ts":1682725898237142,"dur":60}])json"));
    const std::vector<Slice>& slices = trace.timeline.slices();
    QCOMPARE(slices.size(), std::size_t{2});
    QCOMPARE(slices[0].startSeconds, 0.0);
    QVERIFY(std::fabs(trace.timeline.endSeconds() - 160e-6) < 1e-12);
    QCOMPARE(trace.timeline.text(slices[0].name), std::string("at::native::add<float>(int)"));
    QCOMPARE(slices[1].category, SliceCategory::Compute);
}

void TestReadTrace::onlyKernelsAreOfDevices_data()
{
    QTest::addColumn<QByteArray>("events");
    QTest::addColumn<QStringList>("rows"); ///< DEVICE STREAM: SLICE CATEGORY, the host being -1

    QTest::newRow("PyTorch: CPU, GPU 0 and Spans")
        << QByteArray(R"(
        {"ph":"M","pid":40,"name":"process_labels","args":{"labels":"CPU"}},
        {"ph":"M","pid":0,"name":"process_labels","args":{"labels":"GPU 0"}},
        {"ph":"M","pid":0,"tid":7,"name":"thread_name","args":{"name":"stream 7"}},
        {"ph":"X","pid":0,"tid":7,"ts":10,"dur":5,"name":"gemm","cat":"kernel"},
        {"ph":"X","pid":0,"tid":7,"ts":9,"dur":7,"name":"forward","cat":"gpu_user_annotation"},
        {"ph":"X","pid":40,"tid":1,"ts":1,"dur":5,"name":"gemm","cat":"an unknown category"},
        {"ph":"X","pid":"Spans","tid":"Profiler","ts":0,"dur":50,"name":"Profiler 0","cat":"Trace"})")
        << QStringList{"0 stream 7: gemm compute", "-1 thread 1: gemm host", "-1 device 0, stream 7: forward host",
               "-1 thread Profiler: Profiler 0 host"};
    QTest::newRow("XLA: modules span operations")
        << QByteArray(R"(
        {"ph":"M","pid":3,"name":"process_name","args":{"name":"/device:TPU:0"}},
        {"ph":"M","pid":3,"tid":1,"name":"thread_name","args":{"name":"XLA Modules"}},
        {"ph":"M","pid":3,"tid":2,"name":"thread_name","args":{"name":"XLA Ops"}},
        {"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
        {"ph":"X","pid":3,"tid":1,"ts":0,"dur":9,"name":"jit_step"},
        {"ph":"X","pid":3,"tid":2,"ts":1,"dur":2,"name":"fusion.1"},
        {"ph":"X","pid":701,"tid":1,"ts":0,"dur":1,"name":"Execute"})")
        << QStringList{"0 XLA Ops: fusion.1 compute", "-1 thread 1: Execute host", "-1 device 0, XLA Modules: jit_step host"};
    QTest::newRow("no names: every process is a device") << QByteArray(R"(
        {"ph":"X","pid":5,"tid":1,"ts":0,"dur":9,"name":"a"},{"ph":"X","pid":6,"tid":1,"ts":0,"dur":9,"name":"b"})")
                                                         << QStringList{"0 thread 1: a compute", "1 thread 1: b compute"};
}

void TestReadTrace::onlyKernelsAreOfDevices()
{
    QFETCH(QByteArray, events);
    QFETCH(QStringList, rows);
    const ForeignTrace trace = valueOf(read("[" + events.toStdString() + "]"));
    QStringList found;
    for (const Slice& slice : trace.timeline.slices()) {
        const TimelineRow& row = trace.timeline.rows()[slice.row];
        found << QString::fromStdString(
            fmt::format("{} {}: {} {}", row.device, row.stream, trace.timeline.text(slice.name), categoryName(slice.category)));
    }
    QCOMPARE(found, rows);
}

void TestReadTrace::slicesWithinSlicesHaveRowsOfTheirOwn()
{
    const ForeignTrace trace = valueOf(read(R"([{"ph":"X","pid":1,"tid":1,"ts":0,"dur":10,"name":"a"},
        {"ph":"X","pid":1,"tid":1,"ts":2,"dur":3,"name":"b"}, {"ph":"X","pid":1,"tid":1,"ts":5,"dur":5,"name":"c"},
        {"ph":"X","pid":1,"tid":1,"ts":0,"dur":2,"name":"d"}, {"ph":"X","pid":1,"tid":1,"ts":10,"dur":1,"name":"e"}])"));
    QCOMPARE(trace.timeline.rows().size(), std::size_t{2});
    QCOMPARE(trace.timeline.rows()[1].stream, std::string("thread 1, within 1"));
    std::string names;
    double end = 0.0;
    std::uint32_t row = 0;
    for (const Slice& slice : trace.timeline.slices()) {
        if (slice.row != row)
            end = 0.0;
        row = slice.row;
        QVERIFY(slice.startSeconds >= end);
        end = slice.startSeconds + slice.durationSeconds - 1e-12;
        names += trace.timeline.text(slice.name);
    }
    QCOMPARE(names, std::string("aedbc"));
}

void TestReadTrace::tellsCategoriesByNames_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("category");
    QTest::addColumn<int>("expected");

    const auto row = [](const char* name, const char* category, SliceCategory expected) {
        QTest::newRow(name) << name << category << static_cast<int>(expected);
    };
    row("ncclDevKernel_AllGather_RING_LL(x)", "kernel", SliceCategory::AllGather);
    row("ncclKernel_ReduceScatter_RING", "kernel", SliceCategory::ReduceScatter);
    row("ncclDevKernel_SendRecv", "kernel", SliceCategory::Permute);
    row("all-to-all.3", "", SliceCategory::AllToAll);
    row("collective-permute-start.1", "", SliceCategory::Permute);
    row("jit(step)/ppermute", "", SliceCategory::Permute);
    row("permute_021_kernel", "kernel", SliceCategory::Compute);
    row("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", SliceCategory::Transfer);
    row("cudaDeviceSynchronize", "cuda_runtime", SliceCategory::Wait);
    row("c10d::allreduce_", "cpu_op", SliceCategory::Host);
    row("fusion.12", "", SliceCategory::Compute);
    row("anything", "wait", SliceCategory::Wait);
    row("Stream Wait Event", "cuda_sync", SliceCategory::Wait);
    row("Activity Buffer Request", "overhead", SliceCategory::Host);
}

void TestReadTrace::tellsCategoriesByNames()
{
    QFETCH(QString, name);
    QFETCH(QString, category);
    QFETCH(int, expected);
    QCOMPARE(static_cast<int>(categoryOfName(name.toStdString(), category.toStdString())), expected);
}

void TestReadTrace::isTold()
{
    QVERIFY(isTraceJson(R"( {"traceEvents": [)"));
    QVERIFY(isTraceJson(R"([{"ph": "X"}])"));
    QVERIFY(!isTraceJson(R"({"model_type": "llama"})"));
    QVERIFY(!isTraceJson("[1, 2]"));
    QVERIFY(!isTraceJson(""));
    QVERIFY(!isTraceJson("name: \"traceEvents\""));
}

void TestReadTrace::refusesWhatHasNoSlices_data()
{
    QTest::addColumn<QByteArray>("text");

    QTest::newRow("nothing") << QByteArray();
    QTest::newRow("no JSON") << QByteArray("[{]");
    QTest::newRow("no events") << QByteArray(R"({"traceEvents": []})");
    QTest::newRow("a number") << QByteArray("3");
    QTest::newRow("no length") << QByteArray(R"([{"ph":"X","ts":0}])");
    QTest::newRow("a length below 0") << QByteArray(R"([{"ph":"X","ts":0,"dur":-1}])");
    QTest::newRow("a time that is none") << QByteArray(R"([{"ph":"X","ts":1e300,"dur":1}])");
    QTest::newRow("an end without a beginning") << QByteArray(R"([{"ph":"E","ts":1}])");
}

void TestReadTrace::refusesWhatHasNoSlices()
{
    QFETCH(QByteArray, text);
    const auto trace = read(text.toStdString());
    QVERIFY(!trace);
    QCOMPARE(trace.error().front().id, std::string("MW1792"));
}

void TestReadTrace::aFileThatWasCutOffHasWhatComesBefore()
{
    const ForeignTrace trace = valueOf(read(R"([{"ph":"X","pid":1,"tid":1,"ts":0,"dur":10,"name":"a"}, {"ph":"X","pi)"));
    QCOMPARE(trace.timeline.slices().size(), std::size_t{1});
}

MESHWRIGHT_TEST(TestReadTrace)

} // namespace tst_read_trace

#include "tst_read_trace.moc"
