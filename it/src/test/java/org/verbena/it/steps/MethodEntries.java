package org.verbena.it.steps;

import com.sun.jdi.Bootstrap;
import com.sun.jdi.Method;
import com.sun.jdi.VMDisconnectedException;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.IllegalConnectorArgumentsException;
import com.sun.jdi.connect.ListeningConnector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.MethodEntryEvent;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.ClassPrepareRequest;
import com.sun.jdi.request.EventRequest;
import com.sun.jdi.request.MethodEntryRequest;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.verbena.transport.spi.Patience;

/**
 * The methods that a program in a JVM of its own enters between {@link Mark#begin} and {@link Mark#end}, found through
 * the JDK's debug interface. The program waits at the next {@code begin} until it is looked at.
 */
final class MethodEntries implements AutoCloseable {
    /** Copies the counters now and then, whatever is sent. */
    private static final String COPIES_COUNTERS = "verbena-stat";

    private final Process process;
    private final VirtualMachine vm;
    private final List<MethodEntryRequest> entries = new ArrayList<>();
    private final Map<Long, Boolean> leftOut = new HashMap<>();

    private MethodEntries(Process process, VirtualMachine vm, String... classFilters) {
        this.process = process;
        this.vm = vm;
        ClassPrepareRequest loaded = vm.eventRequestManager().createClassPrepareRequest();
        loaded.addClassFilter(Mark.class.getName());
        loaded.enable();
        for (String filter : classFilters) {
            MethodEntryRequest request = vm.eventRequestManager().createMethodEntryRequest();
            request.addClassFilter(filter);
            request.addClassExclusionFilter(Mark.class.getPackageName() + ".*");
            request.setSuspendPolicy(EventRequest.SUSPEND_NONE);
            entries.add(request);
        }
        vm.resume();
    }

    /**
     * Starts a program.
     *
     * @param classFilters which classes' methods count, as the debug interface has it
     */
    static MethodEntries of(Class<?> program, List<String> arguments, String... classFilters)
            throws IOException, IllegalConnectorArgumentsException {
        ListeningConnector connector = Bootstrap.virtualMachineManager().listeningConnectors().stream()
                .filter(each -> each.transport().name().equals("dt_socket"))
                .findFirst()
                .orElseThrow();
        Map<String, Connector.Argument> how = connector.defaultArguments();
        how.get("localAddress").setValue("127.0.0.1");
        how.get("port").setValue("0");
        how.get("timeout").setValue(String.valueOf(Patience.LIMIT.toMillis()));
        String address = connector.startListening(how);
        Process process = null;
        try {
            List<String> command = new ArrayList<>(List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-agentlib:jdwp=transport=dt_socket,address=" + address,
                    "--enable-native-access=ALL-UNNAMED",
                    "--sun-misc-unsafe-memory-access=allow",
                    "-XX:TieredStopAtLevel=1",
                    "-Dio.netty.leakDetection.level=disabled",
                    "-cp",
                    System.getProperty("java.class.path"),
                    program.getName()));
            command.addAll(arguments);
            process = new ProcessBuilder(command)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            return new MethodEntries(process, connector.accept(how), classFilters);
        } catch (IOException | RuntimeException e) {
            if (process != null) {
                process.destroyForcibly();
            }
            throw e;
        } finally {
            connector.stopListening(how);
        }
    }

    /** What is entered between the next two marks: by thread, in order. */
    List<List<Method>> next() throws InterruptedException {
        Map<Long, List<Method>> byThread = new LinkedHashMap<>();
        boolean isBetween = false;
        while (true) {
            EventSet events = vm.eventQueue().remove(Patience.LIMIT.toMillis());
            if (events == null) {
                throw new AssertionError("the program has come to no mark for " + Patience.LIMIT);
            }
            boolean isOver = false;
            for (Event event : events) {
                if (event instanceof ClassPrepareEvent loaded) {
                    loaded.referenceType().methodsByName("begin").forEach(this::breakAt);
                    loaded.referenceType().methodsByName("end").forEach(this::breakAt);
                } else if (event instanceof BreakpointEvent at) {
                    isBetween = at.location().method().name().equals("begin");
                    isOver = !isBetween;
                    for (MethodEntryRequest request : entries) {
                        request.setEnabled(isBetween);
                    }
                } else if (event instanceof MethodEntryEvent entry && isBetween && !isLeftOut(entry)) {
                    byThread.computeIfAbsent(entry.thread().uniqueID(), thread -> new ArrayList<>())
                            .add(entry.method());
                }
            }
            events.resume();
            if (isOver) {
                return List.copyOf(byThread.values());
            }
        }
    }

    private void breakAt(Method method) {
        BreakpointRequest request = vm.eventRequestManager().createBreakpointRequest(method.location());
        request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        request.enable();
    }

    private boolean isLeftOut(MethodEntryEvent entry) {
        return leftOut.computeIfAbsent(
                entry.thread().uniqueID(), id -> entry.thread().name().startsWith(COPIES_COUNTERS));
    }

    @Override
    public void close() {
        try {
            vm.exit(0);
        } catch (VMDisconnectedException ended) {
            // It has ended by itself.
        } finally {
            process.destroyForcibly();
        }
    }
}
