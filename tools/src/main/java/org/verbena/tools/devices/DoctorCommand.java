package org.verbena.tools.devices;

import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.verbena.doctor.Diagnosis;
import org.verbena.doctor.Doctor;
import org.verbena.doctor.Finding;
import org.verbena.doctor.ProviderVerdict;
import org.verbena.doctor.Verdict;
import org.verbena.samples.command.Json;
import org.verbena.transport.provider.ProviderChoice;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** Prints the findings of {@link Doctor}. */
@Command(
        name = "doctor",
        description = "Checks what works on this machine, and the path to a peer, and says what to do.",
        footer =
                "%nThe exit code is 1 if a check failed; warnings and skipped checks leave it at 0. That this machine has"
                        + " no RDMA device is a failure only with --provider verbs.")
public final class DoctorCommand implements Callable<Integer> {
    private static final int HIGHEST_PORT = 65535;

    @Parameters(
            index = "0",
            arity = "0..1",
            paramLabel = "HOST[:PORT]",
            description =
                    "A peer: its name, the route and the device behind it; with a port, a connection as well. An IPv6"
                            + " address with a port is in brackets.")
    private @Nullable String peer;

    @Option(
            names = "--echo",
            description = "The peer is an echo-server: send messages of 64 B to 1 MiB and check the replies.")
    private boolean echo;

    @Option(
            names = "--provider",
            paramLabel = "auto|verbs|soft|shm",
            description = "The provider that has to work, and that the connection to the peer uses (auto).")
    private String provider = ProviderChoice.configured();

    @Option(names = "--json", description = "Print as JSON.")
    private boolean json;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        Doctor doctor = new Doctor().provider(provider);
        if (peer != null) {
            setPeer(doctor, peer);
        } else if (echo) {
            throw wrong("--echo needs HOST:PORT");
        }
        if (!json) {
            doctor.onFinding(finding -> print(out, finding));
        }
        Diagnosis diagnosis = doctor.examine();
        if (json) {
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("verdict", diagnosis.worst());
            answer.put("summary", diagnosis.summary());
            answer.put("providers", diagnosis.providers());
            answer.put("findings", diagnosis.findings());
            out.print(Json.of(answer));
        } else {
            out.println();
            diagnosis.providers().forEach(verdict -> print(out, verdict));
            out.println();
            out.println(diagnosis.summary());
        }
        out.flush();
        return diagnosis.worst() == Verdict.FAILURE ? CommandLine.ExitCode.SOFTWARE : CommandLine.ExitCode.OK;
    }

    private void setPeer(Doctor doctor, String text) {
        int colon = text.lastIndexOf(':');
        boolean isBareIpv6 = text.indexOf(':') != colon && !text.startsWith("[");
        boolean hasPort = colon > text.lastIndexOf(']') && !isBareIpv6;
        String host = hasPort ? text.substring(0, colon) : text;
        if (host.startsWith("[") && host.endsWith("]")) {
            host = host.substring(1, host.length() - 1);
        }
        if (host.isEmpty()) {
            throw wrong("the host is missing in '" + text + "'");
        }
        if (echo) {
            if (!hasPort) {
                throw wrong("--echo needs HOST:PORT");
            }
            doctor.peerEchoes();
        }
        doctor.peer(host, hasPort ? port(text.substring(colon + 1)) : 0);
    }

    private int port(String text) {
        try {
            int port = Integer.parseInt(text);
            if (port >= 1 && port <= HIGHEST_PORT) {
                return port;
            }
        } catch (NumberFormatException notANumber) {
            throw wrong("'" + text + "' is not a port");
        }
        throw wrong("a port is 1 to " + HIGHEST_PORT + ", not " + text);
    }

    private ParameterException wrong(String message) {
        return new ParameterException(spec.commandLine(), message);
    }

    private static void print(PrintWriter out, ProviderVerdict verdict) {
        print(out, verdict.verdict(), "provider " + verdict.provider(), verdict.evidence(), verdict.remedy());
    }

    private static void print(PrintWriter out, Finding finding) {
        print(out, finding.verdict(), finding.check(), finding.evidence(), finding.remedy());
    }

    private static void print(PrintWriter out, Verdict verdict, String what, String evidence, String remedy) {
        out.println(String.format(
                Locale.ROOT, "%-8s %s: %s", verdict == Verdict.OK ? "ok" : verdict.toString(), what, evidence));
        if (!remedy.isEmpty()) {
            out.println("         -> " + remedy);
        }
        out.flush();
    }
}
