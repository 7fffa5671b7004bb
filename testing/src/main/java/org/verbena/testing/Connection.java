package org.verbena.testing;

/**
 * Two ends and what is between them.
 *
 * @param client the end that connected
 * @param server the end that accepted
 * @param toServer what the client sends
 * @param toClient what the server sends
 * @param faults of the server's port
 */
record Connection(InProcessEndpoint client, InProcessEndpoint server, Lane toServer, Lane toClient, Faults faults) {
    Connection(InProcessEndpoint client, InProcessEndpoint server, Faults faults) {
        this(client, server, new Lane(client, server), new Lane(server, client), faults);
    }
}
