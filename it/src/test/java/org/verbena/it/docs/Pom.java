package org.verbena.it.docs;

import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import javax.xml.xpath.XPath;
import javax.xml.xpath.XPathConstants;
import javax.xml.xpath.XPathExpressionException;
import javax.xml.xpath.XPathFactory;
import org.w3c.dom.Document;
import org.w3c.dom.Node;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;

/**
 * A Maven project file, read without Maven: paths are XPath below {@code project}, properties of the file itself are
 * filled in.
 */
record Pom(Document document) {
    private static final XPath XPATH = XPathFactory.newInstance().newXPath();
    private static final Pattern PROPERTY = Pattern.compile("\\$\\{([^}]+)}");

    static Pom of(String text) {
        try {
            DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
            factory.setNamespaceAware(false);
            return new Pom(factory.newDocumentBuilder().parse(new InputSource(new StringReader(text))));
        } catch (ParserConfigurationException | SAXException | IOException failure) {
            throw new IllegalArgumentException(failure);
        }
    }

    static Pom of(Path file) throws IOException {
        return of(Files.readString(file));
    }

    /** The text at a path, or an empty string. */
    String get(String path) {
        return filled(evaluate(path, XPathConstants.STRING, String.class).strip());
    }

    /** The texts at a path. */
    List<String> all(String path) {
        NodeList nodes = evaluate(path, XPathConstants.NODESET, NodeList.class);
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < nodes.getLength(); i++) {
            Node node = nodes.item(i);
            texts.add(filled(node.getTextContent().strip()));
        }
        return texts;
    }

    private String filled(String text) {
        Matcher property = PROPERTY.matcher(text);
        return property.replaceAll(found -> Matcher.quoteReplacement(
                found.group(1).equals("project.version") ? get("version") : get("properties/" + found.group(1))));
    }

    private <T> T evaluate(String path, javax.xml.namespace.QName kind, Class<T> type) {
        try {
            return type.cast(XPATH.evaluate("/project/" + path, document, kind));
        } catch (XPathExpressionException failure) {
            throw new IllegalArgumentException(path, failure);
        }
    }
}
