import java.util.ArrayList;
import java.util.List;

/** Takes as many MiB as the first argument says; nothing but what a JVM is given by default. */
public class Hungry {
    public static void main(String[] words) {
        int wanted = Integer.parseInt(words[0]);
        List<byte[]> taken = new ArrayList<>();
        for (int i = 0; i < wanted; i++) {
            byte[] piece = new byte[1024 * 1024];
            java.util.Arrays.fill(piece, (byte) 1);
            taken.add(piece);
        }
        System.out.println("{\"taken\": " + taken.size() + "}");
    }
}
