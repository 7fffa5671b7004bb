package org.verbena.sockets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.net.InetAddress;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.verbena.transport.spi.Patience;

/**
 * PostgreSQL's JDBC driver, which makes its sockets by {@link RdmaSocketFactory}, and a PostgreSQL server, which knows
 * nothing of it: a relay with an {@link RdmaServerSocketFactory} stands before it. A subclass names the provider that
 * is expected, and the relay's address.
 */
@Timeout(380)
public abstract class PostgresSuite {
    private static final int ROWS = 5_000;

    @TempDir
    private Path folder;

    /** Which provider the driver's sockets have, which it makes without being told. */
    protected abstract String provider();

    /** Where the relay listens: an address, not a name. */
    protected String host() {
        return "127.0.0.1";
    }

    @Test
    void theDriverTalksThroughARelay() throws Exception {
        Optional<Path> programs = Postgres.programs();
        Assumptions.assumeTrue(programs.isPresent(), "PostgreSQL is not installed: apt-get install postgresql");
        try (Postgres server = Postgres.start(programs.get(), folder);
                Relay relay = new Relay(
                        new RdmaServerSocketFactory().createServerSocket(0, 50, InetAddress.getByName(host())),
                        server.address())) {
            Properties properties = new Properties();
            properties.setProperty("user", "postgres");
            properties.setProperty("sslmode", "disable");
            properties.setProperty("connectTimeout", "60");
            String url = "jdbc:postgresql://" + host() + ":" + relay.port()
                    + "/postgres?socketFactory=org.verbena.sockets.RdmaSocketFactory";
            try (Connection connection = connect(url, properties, server)) {
                insertsAndSelects(connection);
                copies(connection);
                carriesALongValue(connection);
                try (Connection other = DriverManager.getConnection(url, properties)) {
                    cancels(connection, other);
                }
                timesOut(connection);
            }
            assertThat(SharedLoops.get().provider().name()).isEqualTo(provider());
        }
    }

    private static Connection connect(String url, Properties properties, Postgres server) {
        try {
            return DriverManager.getConnection(url, properties);
        } catch (SQLException e) {
            throw new AssertionError(server.describe(), e);
        }
    }

    private static void insertsAndSelects(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE numbers (id int PRIMARY KEY, name text)");
        }
        connection.setAutoCommit(false);
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO numbers VALUES (?, ?)")) {
            for (int i = 0; i < ROWS; i++) {
                insert.setInt(1, i);
                insert.setString(2, "номер " + i);
                insert.addBatch();
            }
            insert.executeBatch();
        }
        connection.commit();
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(100);
            try (ResultSet rows = statement.executeQuery("SELECT id, name FROM numbers ORDER BY id")) {
                for (int i = 0; i < ROWS; i++) {
                    assertThat(rows.next()).isTrue();
                    assertThat(rows.getInt(1)).isEqualTo(i);
                    assertThat(rows.getString(2)).isEqualTo("номер " + i);
                }
                assertThat(rows.next()).isFalse();
            }
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    private static void copies(Connection connection) throws Exception {
        CopyManager copies = connection.unwrap(PGConnection.class).getCopyAPI();
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < 100_000; i++) {
            lines.append(i).append('\t').append("copied ").append(i).append('\n');
        }
        byte[] sent = lines.toString().getBytes(StandardCharsets.UTF_8);
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE copied (id int, name text)");
        }
        assertThat(copies.copyIn("COPY copied FROM STDIN", new ByteArrayInputStream(sent)))
                .isEqualTo(100_000);
        ByteArrayOutputStream back = new ByteArrayOutputStream();
        copies.copyOut("COPY copied TO STDOUT", back);
        assertThat(Arrays.equals(back.toByteArray(), sent)).isTrue();
    }

    private static void carriesALongValue(Connection connection) throws SQLException {
        byte[] value = new byte[8 << 20];
        new Random(1).nextBytes(value);
        try (PreparedStatement echo = connection.prepareStatement("SELECT ?::bytea")) {
            echo.setBytes(1, value);
            try (ResultSet rows = echo.executeQuery()) {
                assertThat(rows.next()).isTrue();
                assertThat(Arrays.equals(rows.getBytes(1), value)).isTrue();
            }
        }
    }

    /**
     * The driver sends it over a connection of its own, and once: the server has to be at the query, or forgets what
     * there is to cancel.
     */
    private static void cancels(Connection connection, Connection other) throws Exception {
        try (Statement statement = connection.createStatement();
                Statement watching = other.createStatement()) {
            FutureTask<SQLException> sleeping = new FutureTask<>(() -> {
                try {
                    statement.execute("SELECT pg_sleep(600)");
                    return null;
                } catch (SQLException cancelled) {
                    return cancelled;
                }
            });
            Thread.startVirtualThread(sleeping);
            try {
                Patience.until("the query runs", () -> isSleeping(watching));
                statement.cancel();
                Patience.until("the query is cancelled", sleeping::isDone);
            } catch (AssertionError failed) {
                // Closing the statement would wait for the query.
                connection.abort(Runnable::run);
                throw failed;
            }
            assertThat(sleeping.get().getSQLState()).isEqualTo("57014");
        }
    }

    private static boolean isSleeping(Statement watching) {
        try (ResultSet running =
                watching.executeQuery("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")) {
            return running.next() && running.getInt(1) == 1;
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }

    private static void timesOut(Connection connection) throws SQLException {
        connection.setNetworkTimeout(Runnable::run, 50);
        try (Statement statement = connection.createStatement()) {
            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> statement.executeQuery("SELECT pg_sleep(600)"))
                    .withCauseInstanceOf(SocketTimeoutException.class);
        }
        assertThat(connection.isClosed()).isTrue();
    }
}
