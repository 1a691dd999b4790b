package fleetdiff;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.java.tuple.Tuple4;

/** The recorded fleet in memory: one element per profile, in the order of hops. */
final class Fleet {
    /** Bytes of a record: function (4) and count (2), little-endian. */
    static final int RECORD = 6;

    private static final int HEADER = 48;

    /** Hop, cell, arm (1: head), records. */
    final List<Tuple4<Integer, Integer, Integer, byte[]>> profiles = new ArrayList<>();
    final int cells;
    final int functions;
    final int window;
    final int measured;

    private final FileChannel file;
    private final long records;
    private long at = HEADER;

    Fleet(Path path) throws IOException {
        try (FileChannel opened = FileChannel.open(path)) {
            file = opened;
            ByteBuffer header = opened.map(FileChannel.MapMode.READ_ONLY, 0, HEADER).order(ByteOrder.LITTLE_ENDIAN);
            if (header.getLong() != 0x3173726565706466L) {
                throw new IOException(path + " is not a recorded fleet");
            }
            records = header.getLong();
            cells = (int) header.getLong();
            functions = (int) header.getLong();
            window = (int) header.getLong();
            measured = (int) header.getLong();
            read(column(4), column(2), column(2), column(2), column(2), column(1));
        }
    }

    private ByteBuffer column(int width) throws IOException {
        ByteBuffer column = file.map(FileChannel.MapMode.READ_ONLY, at, records * width).order(ByteOrder.LITTLE_ENDIAN);
        at += records * width;
        return column;
    }

    private void read(ByteBuffer function, ByteBuffer count, ByteBuffer hop, ByteBuffer pod, ByteBuffer cell, ByteBuffer head) {
        int start = 0;
        for (int end = 1; end <= records; end++) {
            if (end < records && pod.getShort(2 * end) == pod.getShort(2 * start) && hop.getShort(2 * end) == hop.getShort(2 * start)) {
                continue;
            }
            ByteBuffer profile = ByteBuffer.allocate((end - start) * RECORD).order(ByteOrder.LITTLE_ENDIAN);
            for (int record = start; record < end; record++) {
                profile.putInt(function.getInt(4 * record)).putShort(count.getShort(2 * record));
            }
            profiles.add(Tuple4.of((int) hop.getShort(2 * start), (int) cell.getShort(2 * start), (int) head.get(start), profile.array()));
            start = end;
        }
    }
}
