package org.verbena.transport.stat;

import java.util.List;
import org.verbena.transport.ClientStatistics;

/**
 * The content of a process's file.
 *
 * @param pid its number
 * @param alive whether the process is there
 * @param stopped whether it is stopped by a signal or a debugger
 * @param command its main class, or jar
 * @param javaVersion of its JVM
 * @param startedMillis when it began, since 1970; 0 if unknown
 * @param takenNanos when this was read, {@link System#nanoTime()}
 * @param openConnections its connections now
 * @param connectionsWithoutRow how many of them are not in {@code connections}, because all rows were taken
 * @param connectionRows how many can be
 * @param providers the providers of its connections
 * @param loops its event loops
 * @param connections its connections
 * @param clients its clients of the short form, the first 64
 * @param failedConnections how many did not come up, or ended with an error
 * @param lastErrors those of the last 16 of them, the latest first
 */
public record ProcessReading(
        long pid,
        boolean alive,
        boolean stopped,
        String command,
        String javaVersion,
        long startedMillis,
        long takenNanos,
        long openConnections,
        long connectionsWithoutRow,
        int connectionRows,
        List<ProviderReading> providers,
        List<LoopReading> loops,
        List<ConnectionReading> connections,
        List<ClientStatistics> clients,
        long failedConnections,
        List<EndedReading> lastErrors) {}
