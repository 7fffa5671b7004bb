package org.verbena.tools.command;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.PinnedThreadFactory;
import org.verbena.transport.provider.ProviderChoice;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** A mixin for commands that measure: which processors event loops run on. */
public final class CpuOption {
    @Option(
            names = "--cpu",
            paramLabel = "LIST",
            converter = Parser.class,
            description =
                    "Bind event loops to these processors, such as 0,2-3: the first loop to the first of them, and"
                            + " so on, from the start again if there are more loops. Linux only.")
    private @Nullable CpuList list;

    @Spec(Spec.Target.MIXEE)
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandSpec spec;

    /**
     * Makes the loops of a command, each bound to its processor if the option is given.
     *
     * @param provider {@code auto}, {@code verbs}, {@code soft}
     * @param threads how many; 0 for as many as there are processors in the list, and Netty's default without one
     * @param options how the loops wait
     * @throws ParameterException the list has a processor that does not exist, or this is not Linux
     */
    public RdmaEventLoopGroup newGroup(String provider, int threads, CompletionLoopOptions options) {
        if (list == null) {
            return new RdmaEventLoopGroup(provider, threads, options);
        }
        ProviderChoice choice = ProviderChoice.choose(provider, null);
        try {
            return new RdmaEventLoopGroup(
                    choice,
                    threads == 0 ? list.cpus.size() : threads,
                    new PinnedThreadFactory("verbena-" + choice.provider().name(), list.cpus),
                    options);
        } catch (IllegalArgumentException | UnsupportedOperationException wrong) {
            throw new ParameterException(spec.commandLine(), "--cpu: " + wrong.getMessage(), wrong);
        }
    }

    /** A type of its own: picocli would convert the elements of a list. */
    record CpuList(List<Integer> cpus) {}

    /** Numbers and ranges with commas. */
    static final class Parser implements ITypeConverter<CpuList> {
        @Override
        public CpuList convert(String text) {
            List<Integer> cpus = new ArrayList<>();
            for (String part : text.split(",", -1)) {
                int dash = part.indexOf('-');
                int first = number(text, dash < 0 ? part : part.substring(0, dash));
                int last = dash < 0 ? first : number(text, part.substring(dash + 1));
                if (first > last) {
                    throw malformed(text);
                }
                for (int cpu = first; cpu <= last; cpu++) {
                    cpus.add(cpu);
                }
            }
            return new CpuList(List.copyOf(cpus));
        }

        private static int number(String text, String digits) {
            try {
                int cpu = Integer.parseInt(digits);
                if (cpu >= 0 && cpu <= PinnedThreadFactory.HIGHEST_PROCESSOR) {
                    return cpu;
                }
            } catch (NumberFormatException notOne) {
                // Treat it like a number out of range.
            }
            throw malformed(text);
        }

        private static TypeConversionException malformed(String text) {
            return new TypeConversionException(
                    "'" + text + "' is not a list of processors such as 0,2-3, of numbers to "
                            + PinnedThreadFactory.HIGHEST_PROCESSOR);
        }
    }
}
