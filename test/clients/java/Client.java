/*
 * Amazon's lock client, told on standard input what to do: a command on each line, the answer
 * to each on one line of standard output. It says "ready" first, when it has read from the table.
 *
 *	java Client URL LEASE_MS HEARTBEAT_MS [SORT_KEY]
 *
 * If the table has a sort key, a NAME is PARTITION#SORT.
 *
 *	acquire NAME [OPTION ...]	"held", or why not.  Options: try (do not wait), wait=SECONDS
 *								(in addition to the lease; 60), refresh=MS, keep (update the
 *								item, and keep it when the lock is released), data=TEXT,
 *								keepdata (do not replace the data that is there), and
 *								team=TEXT (an additional attribute)
 *	release NAME				"released", or "lost"
 *	heartbeat NAME LEASE_MS TEXT	a heartbeat with another lease and other data
 *	data NAME					the data of a lock that is held
 *	team NAME					a lock's data, and its attribute: "DATA TEAM"; "none" if missing
 *	look NAME					who holds it: "OWNER LEASE_MS", or "free"
 *	list [PARTITION]			the names of all items, or of those in a partition, sorted
 *	contend NAME SECONDS FILE HOLD_MS [OPTION ...]	acquires, holds for about as long, and releases,
 *								in turn; writes to the file when it held the lock, "SINCE UNTIL"
 *								in microseconds; "GRANTS LOST", the latter being locks that were
 *								no longer there to release
 *	pairs THREADS SECONDS		each thread acquires and releases a lock of its own in turn;
 *								"PAIRS SECONDS REQUESTS"
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;

import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.amazonaws.services.dynamodbv2.SendHeartbeatOptions;
import com.amazonaws.services.dynamodbv2.model.LockCurrentlyUnavailableException;
import com.amazonaws.services.dynamodbv2.model.LockNotGrantedException;

import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;

public class Client
{
	private final LongAdder requests = new LongAdder();
	private final Map<String, LockItem> held = new HashMap<>();
	private final DynamoDbClient dynamoDb;
	private final AmazonDynamoDBLockClient locks;
	private final boolean sorted;

	private Client(String url, long leaseMs, long heartbeatMs, Optional<String> sortKey)
	{
		sorted = sortKey.isPresent();
		dynamoDb = DynamoDbClient.builder().region(Region.US_EAST_1)
			.endpointOverride(URI.create(url))
			.credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test")))
			.overrideConfiguration(c -> c.addExecutionInterceptor(new ExecutionInterceptor()
			{
				@Override
				public void beforeTransmission(Context.BeforeTransmission context, ExecutionAttributes attributes)
				{
					requests.increment();
				}
			})).build();
		AmazonDynamoDBLockClientOptions.AmazonDynamoDBLockClientOptionsBuilder options =
			AmazonDynamoDBLockClientOptions.builder(dynamoDb, "lockTable")
				.withOwnerName("java-" + ProcessHandle.current().pid())
				.withLeaseDuration(leaseMs).withHeartbeatPeriod(heartbeatMs)
				.withTimeUnit(TimeUnit.MILLISECONDS)
				.withCreateHeartbeatBackgroundThread(true);
		sortKey.ifPresent(options::withSortKeyName);
		locks = new AmazonDynamoDBLockClient(options.build());
	}

	public static void main(String[] args) throws Exception
	{
		BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
		Client client = new Client(args[0], Long.parseLong(args[1]), Long.parseLong(args[2]),
			Optional.ofNullable(args.length > 3 ? args[3] : null));

		client.look(client.sorted ? "ready#ready" : "ready");
		System.out.println("ready");
		for (String line; (line = commands.readLine()) != null; )
			System.out.println(client.obey(line.split(" ")));
		System.exit(0);
	}

	private String obey(String[] words) throws Exception
	{
		switch (words[0])
		{
			case "acquire":
				try
				{
					held.put(words[1], locks.acquireLock(options(words, 2)));
					return "held";
				}
				catch (LockNotGrantedException | LockCurrentlyUnavailableException | NumberFormatException e)
				{
					return e.getClass().getSimpleName() + ": " + e.getMessage();
				}
			case "release":
				return locks.releaseLock(held.remove(words[1])) ? "released" : "lost";
			case "heartbeat":
				locks.sendHeartbeat(SendHeartbeatOptions.builder(held.get(words[1]))
					.withLeaseDurationToEnsure(Long.parseLong(words[2])).withTimeUnit(TimeUnit.MILLISECONDS)
					.withData(bytes(words[3])).build());
				return "sent";
			case "data":
				return held.get(words[1]).getData().map(Client::text).orElse("none");
			case "team":
				return look(words[1])
					.map(lock -> lock.getData().map(Client::text).orElse("none") + " "
						+ Optional.ofNullable(lock.getAdditionalAttributes().get("team"))
							.map(AttributeValue::s).orElse("none"))
					.orElse("free");
			case "look":
				return look(words[1])
					.map(lock -> lock.getOwnerName() + " " + lock.getLeaseDuration()).orElse("free");
			case "list":
				return (words.length > 1 ? locks.getLocksByPartitionKey(words[1], false) : locks.getAllLocksFromDynamoDB(false))
					.map(lock -> lock.getPartitionKey() + lock.getSortKey().map(sort -> "#" + sort).orElse("")).sorted()
					.collect(Collectors.joining(" "));
			case "contend":
				return contend(words);
			case "pairs":
				return pairs(Integer.parseInt(words[1]), Double.parseDouble(words[2]));
			default:
				throw new IllegalArgumentException(words[0]);
		}
	}

	private String partition(String name) { return sorted ? name.substring(0, name.indexOf('#')) : name; }

	private Optional<String> sort(String name)
	{
		return sorted ? Optional.of(name.substring(name.indexOf('#') + 1)) : Optional.empty();
	}

	private Optional<LockItem> look(String name) { return locks.getLock(partition(name), sort(name)); }

	private static ByteBuffer bytes(String text) { return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)); }

	private static String text(ByteBuffer data) { return StandardCharsets.UTF_8.decode(data.duplicate()).toString(); }

	/* What words[1] is to be acquired with: the words from "first" on say it. */
	private AcquireLockOptions options(String[] words, int first)
	{
		AcquireLockOptions.AcquireLockOptionsBuilder options = AcquireLockOptions.builder(partition(words[1]))
			.withTimeUnit(TimeUnit.MILLISECONDS).withAdditionalTimeToWaitForLock(60000L);

		sort(words[1]).ifPresent(options::withSortKey);

		for (int i = first; i < words.length; i++)
		{
			String value = words[i].substring(words[i].indexOf('=') + 1);

			switch (words[i].split("=")[0])
			{
				case "try": options.withShouldSkipBlockingWait(true).withAdditionalTimeToWaitForLock(0L); break;
				case "wait": options.withAdditionalTimeToWaitForLock(1000 * Long.parseLong(value)); break;
				case "refresh": options.withRefreshPeriod(Long.parseLong(value)); break;
				case "keep": options.withUpdateExistingLockRecord(true).withDeleteLockOnRelease(false); break;
				case "data": options.withData(bytes(value)); break;
				case "keepdata": options.withReplaceData(false); break;
				case "team": options.withAdditionalAttributes(Map.of("team", AttributeValue.builder().s(value).build())); break;
				default: throw new IllegalArgumentException(words[i]);
			}
		}
		return options.build();
	}

	private static long nowUs() { return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()); }

	/* What it cannot get, or cannot read, it tries again. */
	private String contend(String[] words) throws Exception
	{
		AcquireLockOptions options = options(words, 5);
		int holdMs = Integer.parseInt(words[4]);
		long end = System.nanoTime() + (long) (Double.parseDouble(words[2]) * 1e9);
		int grants = 0;
		int lost = 0;

		try (PrintWriter file = new PrintWriter(words[3]))
		{
			while (System.nanoTime() < end)
			{
				try
				{
					LockItem lock = locks.acquireLock(options);
					long since = nowUs();

					Thread.sleep(ThreadLocalRandom.current().nextInt(holdMs / 2, holdMs * 3 / 2));
					file.println(since + " " + nowUs());
					grants++;
					lost += locks.releaseLock(lock) ? 0 : 1;
				}
				catch (LockNotGrantedException | LockCurrentlyUnavailableException | NumberFormatException e)
				{
					Thread.sleep(20);
				}
			}
		}
		return grants + " " + lost;
	}

	/*
	 * A lock costs this client three requests whatever its options say, and one more at each
	 * heartbeat. These locks are not held for long enough to need any.
	 */
	private String pairs(int threads, double seconds) throws Exception
	{
		ExecutorService pool = Executors.newFixedThreadPool(threads);
		AmazonDynamoDBLockClient client = new AmazonDynamoDBLockClient(
			AmazonDynamoDBLockClientOptions.builder(dynamoDb, "lockTable")
				.withCreateHeartbeatBackgroundThread(false).build());
		List<Callable<Long>> loops = new ArrayList<>();
		long requestsBefore = requests.sum();
		long start = System.nanoTime();
		long end = start + (long) (seconds * 1e9);
		long count = 0;

		for (int i = 0; i < threads; i++)
		{
			AcquireLockOptions options = AcquireLockOptions.builder("java " + i).build();

			loops.add(() ->
			{
				long done = 0;

				for (; System.nanoTime() < end; done++)
				{
					if (!client.releaseLock(client.acquireLock(options)))
						throw new IllegalStateException("a lock was lost");
				}
				return done;
			});
		}
		for (Future<Long> loop : pool.invokeAll(loops))
			count += loop.get();
		double took = (System.nanoTime() - start) / 1e9;

		pool.shutdown();
		return String.format("%d %.3f %d", count, took, requests.sum() - requestsBefore);
	}
}
