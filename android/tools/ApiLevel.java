import java.io.File;
import java.io.FileInputStream;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

import org.codehaus.mojo.animal_sniffer.ClassListBuilder;
import org.codehaus.mojo.animal_sniffer.SignatureChecker;
import org.codehaus.mojo.animal_sniffer.logging.Logger;

/**
 * Refuses code that calls what the oldest supported Android has not got: SIGNATURE ALLOWED JAR.
 *
 * <p>ALLOWED lists calls of newer Androids that the code makes only where they are: a line for each,
 * as this program names it. One that is no longer made is refused, too.
 */
public final class ApiLevel {
    public static void main(String[] arguments) throws Exception {
        Set<String> allowed = new TreeSet<>();
        for (String line : Files.readAllLines(Paths.get(arguments[1]))) {
            if (!line.isEmpty() && !line.startsWith("#")) {
                allowed.add(line);
            }
        }
        Findings findings = new Findings();
        ClassListBuilder own = new ClassListBuilder(findings);
        own.process(new File(arguments[2]));
        try (InputStream signature = new FileInputStream(arguments[0])) {
            SignatureChecker checker =
                    new SignatureChecker(signature, own.getPackages(), findings);
            checker.setSourcePath(new ArrayList<File>());
            checker.process(new File(arguments[2]));
        }
        List<String> wrong = new ArrayList<>();
        for (String finding : findings.found) {
            if (!allowed.contains(finding)) {
                wrong.add("not in the oldest Android: " + finding);
            }
        }
        for (String line : allowed) {
            if (!findings.found.contains(line)) {
                wrong.add("listed in " + arguments[1] + ", and not called: " + line);
            }
        }
        if (!wrong.isEmpty()) {
            wrong.forEach(System.err::println);
            System.exit(1);
        }
    }

    /** Keeps what is undefined, without the place, whose line changes. */
    private static final class Findings implements Logger {
        final Set<String> found = new TreeSet<>();

        @Override
        public void error(String message) {
            int at = message.indexOf("Undefined reference: ");
            found.add(at < 0 ? message : message.substring(at + "Undefined reference: ".length()));
        }

        @Override
        public void error(String message, Throwable cause) {
            error(message);
        }

        @Override
        public void info(String message) {}

        @Override
        public void info(String message, Throwable cause) {}

        @Override
        public void debug(String message) {}

        @Override
        public void debug(String message, Throwable cause) {}

        @Override
        public void warn(String message) {}

        @Override
        public void warn(String message, Throwable cause) {}
    }
}
