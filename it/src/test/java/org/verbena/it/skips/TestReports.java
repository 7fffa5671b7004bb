package org.verbena.it.skips;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.SAXException;

/**
 * What Surefire and Failsafe reported.
 *
 * @param count how many tests, each invocation of a parameterised one counted
 * @param skipped those that were skipped or aborted
 * @param labMethods the methods of the lab's tests that were run, skipped or aborted: {@code report class#method}
 */
record TestReports(int count, List<SkippedTest> skipped, Set<String> labMethods) {
    private static final String LAB_PACKAGE = "org.verbena.it.lab.";

    /**
     * Reads the reports of all modules.
     *
     * @param root the folder with the modules, at any depth
     * @param since older ones are of former runs
     */
    static TestReports read(Path root, Instant since) throws IOException {
        List<Path> files = find(root, since);
        int count = 0;
        List<SkippedTest> skipped = new ArrayList<>();
        Set<String> labMethods = new TreeSet<>();
        for (Path file : files) {
            Element suite = parse(file).getDocumentElement();
            boolean isOfTheLab = suite.getAttribute("name").startsWith(LAB_PACKAGE);
            NodeList cases = suite.getElementsByTagName("testcase");
            for (int i = 0; i < cases.getLength(); i++) {
                Element test = (Element) cases.item(i);
                // A class that runs a second time, with other options, has their name behind its own.
                String className = test.getAttribute("classname").replaceFirst("\\(.*", "");
                SkippedTest named = new SkippedTest(className, test.getAttribute("name"), "");
                count++;
                if (isOfTheLab) {
                    // A nested class that is inherited has the name that it has where it was written.
                    labMethods.add(suite.getAttribute("name") + " " + named.method());
                }
                NodeList marks = test.getElementsByTagName("skipped");
                if (marks.getLength() > 0) {
                    skipped.add(new SkippedTest(named.className(), named.name(), reason((Element) marks.item(0))));
                }
            }
        }
        return new TestReports(count, skipped, labMethods);
    }

    private static List<Path> find(Path root, Instant since) throws IOException {
        List<Path> files = new ArrayList<>();
        Files.walkFileTree(root, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
                String name = folder.getFileName().toString();
                boolean isForeign = name.startsWith(".") && !folder.equals(root) || name.equals("src");
                return isForeign ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                String name = file.getFileName().toString();
                String folder = file.getParent().getFileName().toString();
                if (name.startsWith("TEST-")
                        && name.endsWith(".xml")
                        && (folder.equals("surefire-reports") || folder.equals("failsafe-reports"))
                        && !attributes.lastModifiedTime().toInstant().isBefore(since)) {
                    files.add(file);
                }
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException gone) {
                // A guest's file, or a program's that ends just now: no report.
                return FileVisitResult.CONTINUE;
            }
        });
        files.sort(null);
        return files;
    }

    private static Document parse(Path file) throws IOException {
        try {
            DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
            factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
            DocumentBuilder builder = factory.newDocumentBuilder();
            return builder.parse(file.toFile());
        } catch (ParserConfigurationException | SAXException e) {
            throw new IOException("no report can be read in " + file, e);
        }
    }

    /** An aborted test has its exception with the stack, a disabled one its message. */
    private static String reason(Element mark) {
        String message = mark.getAttribute("message");
        if (message.isBlank()) {
            message = mark.getTextContent()
                    .lines()
                    .takeWhile(line -> !line.startsWith("\tat "))
                    .reduce((one, next) -> one + " " + next)
                    .orElse("");
        }
        return message.replaceFirst("^org\\.opentest4j\\.TestAbortedException:? ?", "")
                .replaceFirst("^Assumption failed: ", "");
    }
}
